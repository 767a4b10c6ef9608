import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { justBefore, type Offset } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import { readCheckpoint } from "../db/checkpoint.ts";
import type { ApiDeps } from "./deps.ts";

/** How long an answer waits for the tables to reach a position that is in the log. */
export const waitMs = 2_000;

/**
 * Resolves `at` (a position or a time) to an offset and waits until the tables have reached it. Undefined: `at` is empty,
 * which means now.
 * @throws TapedeckError invalid_argument, position_foreign, position_future, not_ready
 */
export async function reachAt(deps: ApiDeps, at: string): Promise<Offset | undefined> {
  if (at === "") return undefined;
  const offset = parsePosition(at) === undefined ? await offsetAtTime(deps, at) : await offsetIn(deps, at, "at");
  await reach(deps, offset, "at");
  return offset;
}

/** Waits until the tables reflect the position; empty: does not wait. */
export async function reachMinimum(deps: ApiDeps, minimum: string): Promise<void> {
  if (minimum !== "") await reach(deps, await offsetIn(deps, minimum, "min_position"), "min_position");
}

async function offsetIn(deps: ApiDeps, text: string, field: string): Promise<Offset> {
  const position = parsePosition(text);
  if (position === undefined) throw invalidArgument(`"${text}" is not a position`, field);
  const { epoch } = await checkpointOf(deps);
  if (position.epoch !== epoch && !belongsToLog(deps.log(), position)) {
    throw new TapedeckError("position_foreign", `position ${text} is from another log: this one is ${epoch}`, {
      field,
    });
  }
  return position.offset;
}

/** The last offset recorded at or before the moment. */
async function offsetAtTime({ log }: ApiDeps, text: string): Promise<Offset> {
  const when = parseWhen(text);
  if (when?.type !== "time") {
    const message = `at "${text}" is neither a position nor a time (RFC 3339, with a zone)`;
    throw invalidArgument(message, "at");
  }
  const reader = log();
  // Recording times have millisecond precision.
  const next = await askLog(() => reader.firstSince(new Date(when.time.getTime() + 1)));
  return next === undefined ? (await askLog(() => reader.bounds())).lastOffset : justBefore(next);
}

async function reach(deps: ApiDeps, offset: Offset, field: string): Promise<void> {
  const { epoch, position } = await checkpointOf(deps);
  if (position >= offset) return;
  const { lastOffset } = await askLog(() => deps.log().bounds());
  if (offset > lastOffset) {
    const latest = formatPosition({ epoch, offset: lastOffset });
    const message = `position ${formatPosition({ epoch, offset })} is beyond the log's end ${latest}`;
    throw new TapedeckError("position_future", message, { field, latest });
  }
  // Asked again: what this process knows may be of a Postgres that failed over to one with fewer rows.
  if ((await deps.progress.reached(offset, waitMs)) && (await checkpointOf(deps)).position >= offset) return;
  throw new TapedeckError(
    "not_ready",
    `the tables are at ${formatPosition({ epoch, offset: deps.progress.position })} and have not reached ${formatPosition({ epoch, offset })} yet: try again in a moment`,
    { field },
  );
}

async function checkpointOf({
  workspace,
  database,
}: ApiDeps): Promise<{ readonly epoch: string; readonly position: Offset }> {
  const checkpoint = await readCheckpoint(database().db, workspace);
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
    throw new TapedeckError("not_ready", "the log is unavailable: try again in a moment", {}, { cause });
  }
}
