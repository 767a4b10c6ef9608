import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { LogReader, PageReader } from "@tapedeck/shared/log/log";
import {
  firstMessageAfter,
  justBefore,
  logStart,
  type Offset,
  offsetOf,
  sequenceOf,
} from "@tapedeck/shared/log/offset";
import { noLongerRetained } from "@tapedeck/shared/log/out-of-range";
import { belongsToLog, formatPosition, type Position, parsePosition } from "@tapedeck/shared/log/position";

/**
 * Resolves the positions and times of clients to offsets in this log. Everything throws
 * TapedeckError: not_ready while the log is unavailable; invalid_argument, position_foreign, position_future and out_of_range for
 * a wrong position or time.
 */
export type Positions = {
  /** Offset of one of our own positions (from query, whose tables may still be those of an earlier log); the log's start for none. */
  own(position: string): Offset;
  readonly written: (offset: Offset) => string;
  /** The log's end, from its leader. */
  lastOffset(): Promise<Offset>;
  /** `start`, `now`, a position or an RFC 3339 time → the offset after which to begin. Decided by the log's leader. */
  resolveAfter(after: string): Promise<Offset>;
  /** `until` → the last offset, inclusive: `now`, a position, or the last one recorded at or before a time. */
  resolveUntil(until: string): Promise<Offset>;
  /** Like resolveUntil, but gives the time itself when it is in the future by the log's clock. */
  resolveEnd(until: string): Promise<Offset | Date>;
};

/** What of the log is needed for that. */
type Bounded = Pick<PageReader, "epoch" | "formerEpochs" | "bounds" | "now" | "firstSince">;

export function positions(log: () => Bounded): Positions {
  return new LogPositions(log);
}

class LogPositions implements Positions {
  readonly #log: () => Bounded;

  constructor(log: () => Bounded) {
    this.#log = log;
  }

  own(position: string): Offset {
    const parsed = parsePosition(position);
    if (parsed === undefined) return logStart;
    if (!belongsToLog(this.#log(), parsed)) {
      throw new TapedeckError("not_ready", "the tables are not those of this log yet: try again in a moment");
    }
    return parsed.offset;
  }

  readonly written = (offset: Offset): string => formatPosition({ epoch: this.#log().epoch, offset });

  async lastOffset(): Promise<Offset> {
    return (await this.#log().bounds()).lastOffset;
  }

  async resolveAfter(after: string): Promise<Offset> {
    const when = parseWhen(after);
    switch (when?.type) {
      case "now":
        return this.lastOffset();
      case "start":
        // Asked only so that a log that is away is refused, as everywhere: a log that drops its oldest messages may begin
        // later by the time that it is read.
        await this.#log().bounds();
        return logStart;
      case "position":
        return this.#ofThisLog(when.position, "after");
      case "time":
        return this.#beforeFirstSince(when.time);
      default:
        throw this.#invalidPositionOrTime("after", after, ", nor start or now");
    }
  }

  async resolveUntil(until: string): Promise<Offset> {
    const when = parseWhen(until);
    if (when?.type === "now") return this.lastOffset();
    if (when?.type === "position") return this.#ofThisLog(when.position, "until");
    if (when?.type === "time") return this.#beforeFirstSince(new Date(when.time.getTime() + 1));
    throw this.#invalidPositionOrTime("until", until, ", nor now");
  }

  async resolveEnd(until: string): Promise<Offset | Date> {
    const when = parseWhen(until);
    if (when?.type !== "time") return this.resolveUntil(until);
    return (await lastBy(this.#log(), when.time)) ?? when.time;
  }

  async #ofThisLog(position: Position, field: string): Promise<Offset> {
    const log = this.#log();
    const text = formatPosition(position);
    if (!belongsToLog(log, position)) {
      const message = `position ${text} is from another log: this one is ${log.epoch}; begin again at "start" or a time`;
      throw new TapedeckError("position_foreign", message, { field });
    }
    const { firstOffset, lastOffset, mayBeBehind } = await log.bounds();
    if (position.offset > lastOffset) {
      if (mayBeBehind) {
        throw new TapedeckError("not_ready", "the log can't be read that far: try again in a moment", {
          field,
        });
      }
      const latest = this.written(lastOffset);
      const message = `position ${text} is beyond the log's end ${latest}`;
      throw new TapedeckError("position_future", message, { field, latest });
    }
    const first = sequenceOf(firstOffset);
    if (position.offset !== logStart && firstMessageAfter(position.offset) < first) {
      throw noLongerRetained(log.epoch, position.offset, first, field);
    }
    return position.offset;
  }

  async #beforeFirstSince(time: Date): Promise<Offset> {
    const first = await this.#log().firstSince(time);
    return first === undefined ? this.lastOffset() : justBefore(first);
  }

  #invalidPositionOrTime(field: string, text: string, words: string): TapedeckError {
    const forms = `a position (such as ${this.written(offsetOf(42))}) nor a time (2026-01-31T12:00:00Z)${words}`;
    return invalidArgument(`${field} "${text}" is neither ${forms}`, field);
  }
}

/** The last offset recorded at a time or before; undefined while the time has not passed for the log. */
export async function lastBy(log: Pick<LogReader, "now" | "firstSince">, time: Date): Promise<Offset | undefined> {
  // Asked first: if the time has passed by now, everything recorded after this is recorded later than the time.
  const { at, lastOffset } = await log.now();
  const later = await log.firstSince(new Date(time.getTime() + 1));
  if (later !== undefined) return justBefore(later);
  return at > time ? lastOffset : undefined;
}
