import { loginName } from "@tapedeck/shared/service/login-name";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { OwnEventLog } from "@tapedeck/tap/skaffold/event-log/own-event-log";
import type { TapIdentity } from "@tapedeck/tap/spill/spill-folder";
import { ulid } from "ulid";
import { CommandError, sentenceOf } from "../../command-error.ts";
import { type GrpcTarget, grpcTarget } from "../../grpc-target.ts";
import type { ConnectionFailure } from "../../recording/connection-failure.ts";
import { closedPort } from "../../recording/nothing-listens.ts";
import { spillHome } from "../../recording/spill-home.ts";
import type { RunOptions } from "./options.ts";
import type { Env, Recordable } from "./recordable.ts";

/** Everything that is settled before the command starts. */
export type RunPlan = {
  readonly target: GrpcTarget;
  readonly home: string;
  /** Its labels are found out while the command runs. */
  readonly identity: TapIdentity;
  readonly eventLog: OwnEventLog | undefined;
  /** Why there is none, for people. */
  readonly reason?: string;
  /** Why the target can't be reached now, if that is known. */
  readonly away: ConnectionFailure | undefined;
};

/**
 * Checks all of the user's settings, and asks the target whether it accepts the recording.
 * @throws CommandError if the target cannot be meant, or accepts nothing
 */
export async function planRun(recordable: Recordable, options: RunOptions, env: Env): Promise<RunPlan> {
  const target = grpcTarget(options.url, env);
  const timeoutMs = await answerTimeoutMs(env);
  const late = new AbortController();
  const asking = timeoutMs === 0 ? undefined : ask(target, late.signal);
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
  const plan = await withEventLog(recordable, { target, home, identity });
  const timer = startTimer(() => late.abort(), timeoutMs);
  const { wrong, away } = (await asking) ?? {};
  stopTimer(timer);
  if (wrong === undefined) return { ...plan, away };
  plan.eventLog?.remove();
  throw new CommandError(wrong);
}

type Answer = { readonly wrong?: string | undefined; readonly away?: ConnectionFailure | undefined };

/** Never rejects. */
async function ask(target: GrpcTarget, signal: AbortSignal): Promise<Answer> {
  const away = await closedPort(target.address);
  if (away !== undefined) return { away };
  const { askTarget } = await import("./ask-target.ts");
  return { wrong: await askTarget(target, signal).catch(sentenceOf) };
}

/**
 * How long the command waits for the target's answer when all else is prepared. A target that has not answered by then is
 * taken for good: what it does not take later waits on the disk.
 */
async function answerTimeoutMs({ TAPEDECK_ANSWER_WITHIN: text = "" }: Env): Promise<number> {
  if (text === "") return 250;
  const { durationForm, durationMs } = await import("@tapedeck/shared/service/duration");
  const ms = durationMs(text);
  if (ms === undefined) throw new CommandError(`TAPEDECK_ANSWER_WITHIN is not ${durationForm}: "${text}".`);
  return ms;
}

type WithoutEventLog = Pick<RunPlan, "target" | "home" | "identity">;

async function withEventLog(recordable: Recordable, plan: WithoutEventLog): Promise<Omit<RunPlan, "away">> {
  try {
    return { ...plan, eventLog: await openEventLog(recordable, plan) };
  } catch (error) {
    // The streams are still recorded.
    const reason = `${plan.home} can't be written (${sentenceOf(error)}): short commands may not be recorded`;
    return { ...plan, eventLog: undefined, reason };
  }
}

async function openEventLog(
  { eventLog, isUpstream }: Recordable,
  { target, home, identity: hello }: WithoutEventLog,
): Promise<OwnEventLog | undefined> {
  if (eventLog === undefined || eventLog.file === "") return undefined;
  const { file, address } = eventLog;
  if (file !== undefined) {
    const { endLeftEventLogs } = await import("@tapedeck/tap/skaffold/event-log/left-event-logs");
    await endLeftEventLogs(home, file);
  }
  return new OwnEventLog({ home, hello, file, to: target.name, isOneProcess: isUpstream, address });
}
