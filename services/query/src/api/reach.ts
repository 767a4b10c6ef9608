import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { belongsToLog, formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import { readCheckpoint } from "../projecting/checkpoint.ts";
import type { ApiDeps } from "./deps.ts";

/** How long an answer waits for the tables to reach a position that is in the log. */
const waitMs = 2_000;

/**
 * Resolves `at` (a position or a time) to a sequence and waits until the tables have reached it. Undefined: `at` is empty,
 * which means now.
 * @throws TapedeckError invalid_argument, position_foreign, position_future, not_ready
 */
export async function reachAt(deps: ApiDeps, at: string): Promise<number | undefined> {
  if (at === "") return undefined;
  const seq = parsePosition(at) === undefined ? await seqAtTime(deps, at) : await seqOf(deps, at, "at");
  await reach(deps, seq, "at");
  return seq;
}

/** Waits until the tables reflect the position; empty: does not wait. */
export async function reachMinimum(deps: ApiDeps, minimum: string): Promise<void> {
  if (minimum !== "") await reach(deps, await seqOf(deps, minimum, "min_position"), "min_position");
}

async function seqOf(deps: ApiDeps, text: string, field: string): Promise<number> {
  const position = parsePosition(text);
  if (position === undefined) throw invalidArgument(`"${text}" is not a position`, field);
  const { epoch } = await checkpointOf(deps);
  if (position.epoch !== epoch && !belongsToLog(deps.log(), position)) {
    throw new TapedeckError("position_foreign", `position ${text} is from another log: this one is ${epoch}`, {
      field,
    });
  }
  return position.seq;
}

/** The last sequence recorded at or before the moment. */
async function seqAtTime({ log }: ApiDeps, text: string): Promise<number> {
  const when = parseWhen(text);
  if (when?.type !== "time") {
    const message = `at "${text}" is neither a position nor a time (RFC 3339, with a zone)`;
    throw invalidArgument(message, "at");
  }
  const reader = log();
  // Recording times have millisecond precision.
  const next = await askLog(() => reader.firstSince(new Date(when.time.getTime() + 1)));
  return next === undefined ? (await askLog(() => reader.bounds())).lastSeq : next - 1;
}

async function reach(deps: ApiDeps, seq: number, field: string): Promise<void> {
  const { epoch, position } = await checkpointOf(deps);
  if (position >= seq) return;
  const { lastSeq } = await askLog(() => deps.log().bounds());
  if (seq > lastSeq) {
    const latest = formatPosition({ epoch, seq: lastSeq });
    const message = `position ${formatPosition({ epoch, seq })} is beyond the log's end ${latest}`;
    throw new TapedeckError("position_future", message, { field, latest });
  }
  if (await deps.progress.reached(seq, waitMs)) return;
  throw new TapedeckError(
    "not_ready",
    `the tables are at ${formatPosition({ epoch, seq: deps.progress.position })} and have not reached ${formatPosition({ epoch, seq })} yet: try again in a moment`,
    { field },
  );
}

async function checkpointOf({ database }: ApiDeps): Promise<{ readonly epoch: string; readonly position: number }> {
  const checkpoint = await readCheckpoint(database().db);
  if (checkpoint === undefined) throw notProjected();
  return checkpoint;
}

export function notProjected(): TapedeckError {
  return new TapedeckError("not_ready", "the log has not been read yet: try again in a moment");
}

/** Reports any failure to get an answer from the log as `not_ready`. */
export async function askLog<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question();
  } catch (cause) {
    if (cause instanceof TapedeckError) throw cause;
    throw new TapedeckError("not_ready", "the log is away: try again in a moment", {}, { cause });
  }
}
