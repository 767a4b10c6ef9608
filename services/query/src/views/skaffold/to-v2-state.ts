import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import { DebuggingContainerEvent, Metadata, PortForwardEvent, State } from "@tapedeck/proto/skaffold/v2/skaffold";
import { ownValue } from "@tapedeck/shared/own-value";
import { fromBase64 } from "../states/base64.ts";
import { flagsFor } from "./flags.ts";
import type { SkaffoldState, V2Facts } from "./state.ts";

const notStarted = "NotStarted";
// v2 reports no other code, whatever failed.
const statusCode = StatusCode.OK;

/** What v2's GetState answers. Before a runner exists, no member is set. */
export function toV2Message({ v2, broken }: SkaffoldState): State {
  if (broken.v2) return State.decode(fromBase64(broken.v2));
  if (v2.runner === 0 && v2.writes === 0) return State.create();
  const flags = flagsFor(v2.flags, v2.reportsLoops);
  const metadata = v2.metadata === null ? undefined : Metadata.decode(fromBase64(v2.metadata));
  const phase = (member: string, status: string | null) =>
    v2.described?.lacks.includes(member) ? undefined : { status: status ?? notStarted, statusCode };
  // State.create would omit unknown fields.
  return {
    buildState: { artifacts: artifactsOf(v2, metadata), autoTrigger: flags.build, statusCode },
    deployState: { status: v2.deploy ?? notStarted, autoTrigger: flags.deploy, statusCode },
    forwardedPorts: Object.fromEntries(
      Object.entries(v2.ports).map(([port, bytes]) => [port, PortForwardEvent.decode(fromBase64(bytes))]),
    ),
    statusCheckState: { status: notStarted, resources: { ...v2.resources }, statusCode },
    fileSyncState: { status: v2.sync ?? notStarted, autoTrigger: flags.sync },
    debuggingContainers: v2.debuggers.map((one) => DebuggingContainerEvent.decode(fromBase64(one.value))),
    metadata,
    testState: phase("testState", v2.test),
    renderState: phase("renderState", v2.render),
    verifyState: phase("verifyState", v2.verify),
    execState: phase("execState", v2.exec),
  };
}

export function toV2State(state: SkaffoldState): Uint8Array {
  return State.encode(toV2Message(state)).finish();
}

function artifactsOf({ artifacts, described }: V2Facts, metadata: Metadata | undefined): Record<string, string> {
  const configured = metadata?.build?.artifacts.map(({ name }) => name) ?? described?.artifacts ?? [];
  const names = [...configured, ...Object.keys(artifacts)];
  return Object.fromEntries(names.map((name) => [name, ownValue(artifacts, name) ?? notStarted]));
}
