import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import { DebuggingContainerEvent, Metadata, PortEvent, State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { ownValue } from "@tapedeck/shared/own-value";
import { fromBase64 } from "../states/base64.ts";
import { flagsFor } from "./flags.ts";
import { mapValues } from "./map-values.ts";
import type { SkaffoldState, V1Facts, Written } from "./state.ts";

const notStarted = "Not Started";

/** What v1's GetState answers. Before a runner exists, no member is set. */
export function toV1Message(state: SkaffoldState): State {
  const { v1, broken } = state;
  if (broken.v1) return State.decode(fromBase64(broken.v1));
  if (v1.runner === 0 && v1.writes === 0) return State.create();
  const flags = flagsFor(v1.flags, v1.reportsLoops);
  // Skaffold 1.9 added codes together with metadata.
  const hasCodes = v1.runner === 0 || v1.metadata !== null;
  const code = (written: Written<number> | null) => (hasCodes ? codeOf(written) : StatusCode.OK);
  // State.create would omit unknown fields.
  return {
    buildState: { artifacts: artifactsOf(state), autoTrigger: flags.build, statusCode: code(v1.buildCode) },
    deployState: { status: text(v1.deploy), autoTrigger: flags.deploy, statusCode: code(v1.deployCode) },
    forwardedPorts: mapValues(v1.ports, (port) => PortEvent.decode(fromBase64(port.value))),
    statusCheckState: {
      status: text(v1.check),
      resources: mapValues(v1.resources, (resource) => resource.value),
      statusCode: code(v1.checkCode),
    },
    fileSyncState: { status: text(v1.sync), autoTrigger: flags.sync },
    debuggingContainers: v1.debuggers.map((one) => DebuggingContainerEvent.decode(fromBase64(one.value))),
    metadata: v1.metadata === null ? undefined : Metadata.decode(fromBase64(v1.metadata)),
    testState: v1.described?.lacks.includes("testState")
      ? undefined
      : { status: text(v1.test), statusCode: code(v1.testCode) },
  };
}

export function toV1State(state: SkaffoldState): Uint8Array {
  return State.encode(toV1Message(state)).finish();
}

/** The artifacts of the configuration, from v2 or the upstream's own state, and those that were built or injected. */
function artifactsOf({ v1, hints }: SkaffoldState): Record<string, string> {
  const configured = hints.artifacts.find(({ runner }) => runner === v1.runner)?.names ?? describedNames(v1);
  const names = [...configured, ...Object.keys(v1.artifacts)];
  return Object.fromEntries(names.map((name) => [name, text(ownValue(v1.artifacts, name) ?? null)]));
}

/** A description from before the stream reported any runner belongs to the next one. */
function describedNames({ described, runner }: V1Facts): readonly string[] {
  if (!described) return [];
  return described.runner === 0 || described.runner === runner ? described.artifacts : [];
}

function text(written: Written<string> | null): string {
  return written?.value ?? notStarted;
}

function codeOf(written: Written<number> | null): StatusCode {
  return (written?.value ?? StatusCode.OK) as StatusCode;
}
