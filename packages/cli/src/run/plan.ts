import { endLeftEventLogs } from "@tapedeck/tap/skaffold/event-log/left-event-logs";
import { OwnEventLog } from "@tapedeck/tap/skaffold/event-log/own-event-log";
import type { TapIdentity } from "@tapedeck/tap/spill/spill-folder";
import { ulid } from "ulid";
import { sentenceOf } from "../command-error.ts";
import type { RunOptions } from "../commands/run/options.ts";
import type { GrpcTarget } from "../gateway-address.ts";
import { loginName } from "./labels.ts";
import type { Env, Recordable } from "./recordable.ts";
import { spillHome } from "./spill-home.ts";

/** What is settled before the command starts. */
export type RunPlan = {
  readonly target: GrpcTarget;
  readonly home: string;
  /** Its labels are found out while the command runs. */
  readonly identity: TapIdentity;
  readonly eventLog: OwnEventLog | undefined;
  /** Why there is none, for people. */
  readonly problem?: string;
};

/**
 * Looks at all that can be wrong with what the user has set, and asks nobody for it, so that the command is not kept waiting:
 * what only the network can tell is met while the command runs, and what is recorded waits on the disk.
 * @throws CommandError where the target can't be meant so
 */
export async function planRun(recordable: Recordable, options: RunOptions, env: Env): Promise<RunPlan> {
  const { grpcTarget } = await import("../gateway-address.ts");
  const target = grpcTarget(options.url, env);
  const home = spillHome(env, options.spill);
  const identity: TapIdentity = {
    // Variables of a CI that are not set come as empty ones.
    developer: options.developer || loginName(),
    project: options.project || recordable.project(),
    upstream: recordable.upstream,
    redact: options.redact,
    tap: ulid(),
    labels: {},
  };
  const plan = { target, home, identity };
  try {
    return { ...plan, eventLog: await openEventLog(recordable, plan) };
  } catch (error) {
    // What the streams tell is recorded still.
    const problem = `${home} can't be written (${sentenceOf(error)}): what ends quickly may not be recorded`;
    return { ...plan, eventLog: undefined, problem };
  }
}

async function openEventLog(
  { eventLog, isUpstream }: Recordable,
  { target, home, identity: hello }: Pick<RunPlan, "target" | "home" | "identity">,
): Promise<OwnEventLog | undefined> {
  if (eventLog === undefined || eventLog.file === "") return undefined;
  const { file, address } = eventLog;
  if (file !== undefined) await endLeftEventLogs(home, file);
  return new OwnEventLog({ home, hello, file, to: target.name, isOneProcess: isUpstream, address });
}
