import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { LogReader } from "@tapedeck/shared/log/log";
import { belongsToLog, formatPosition, type Position, parsePosition } from "@tapedeck/shared/log/position";

/**
 * Resolves the positions and times of clients to sequences of this log. Everything throws
 * TapedeckError: not_ready while the log is away; invalid_argument, position_foreign, position_future and out_of_range for
 * a wrong position or time.
 */
export type Positions = {
  /** Sequence of one of our own positions (from query); 0 for none. */
  own(position: string): number;
  readonly written: (seq: number) => string;
  /** The log's last sequence, from its leader. */
  lastSeq(): Promise<number>;
  /** `start`, `now`, a position or an RFC 3339 time → the sequence after which to begin. Decided by the log's leader. */
  resolveAfter(after: string): Promise<number>;
  /** `until` → the last sequence, inclusive: `now`, a position, or the last one recorded at or before a time. */
  resolveUntil(until: string): Promise<number>;
  /** Like resolveUntil, but gives the time itself when it is in the future by the log's clock. */
  resolveEnd(until: string): Promise<number | Date>;
};

export function positions(log: () => LogReader): Positions {
  return new LogPositions(log);
}

class LogPositions implements Positions {
  readonly #log: () => LogReader;

  constructor(log: () => LogReader) {
    this.#log = log;
  }

  own(position: string): number {
    return parsePosition(position)?.seq ?? 0;
  }

  readonly written = (seq: number): string => formatPosition({ epoch: this.#log().epoch, seq });

  async lastSeq(): Promise<number> {
    return (await this.#log().bounds()).lastSeq;
  }

  async resolveAfter(after: string): Promise<number> {
    const when = parseWhen(after);
    switch (when?.type) {
      case "now":
        return this.lastSeq();
      case "start":
        return (await this.#log().bounds()).firstSeq - 1;
      case "position":
        return this.#ofThisLog(when.position, "after");
      case "time":
        return this.#beforeFirstSince(when.time);
      default:
        throw this.#invalidMoment("after", after, ", nor start or now");
    }
  }

  async resolveUntil(until: string): Promise<number> {
    const when = parseWhen(until);
    if (when?.type === "now") return this.lastSeq();
    if (when?.type === "position") return this.#ofThisLog(when.position, "until");
    if (when?.type === "time") return this.#beforeFirstSince(new Date(when.time.getTime() + 1));
    throw this.#invalidMoment("until", until, ", nor now");
  }

  async resolveEnd(until: string): Promise<number | Date> {
    const when = parseWhen(until);
    if (when?.type !== "time") return this.resolveUntil(until);
    return (await lastBy(this.#log(), when.time)) ?? when.time;
  }

  async #ofThisLog(position: Position, field: string): Promise<number> {
    const log = this.#log();
    const text = formatPosition(position);
    if (!belongsToLog(log, position)) {
      const message = `position ${text} is from another log: this one is ${log.epoch}; begin again at "start" or a time`;
      throw new TapedeckError("position_foreign", message, { field });
    }
    const { firstSeq, lastSeq } = await log.bounds();
    if (position.seq > lastSeq) {
      const latest = this.written(lastSeq);
      const message = `position ${text} is beyond the log's end ${latest}`;
      throw new TapedeckError("position_future", message, { field, latest });
    }
    if (position.seq < firstSeq - 1) {
      const earliest = this.written(firstSeq - 1);
      const message = `position ${text} is no longer kept: continue after ${earliest}; the events before are lost`;
      throw new TapedeckError("out_of_range", message, { field, earliest });
    }
    return position.seq;
  }

  async #beforeFirstSince(time: Date): Promise<number> {
    const first = await this.#log().firstSince(time);
    return first === undefined ? this.lastSeq() : first - 1;
  }

  #invalidMoment(field: string, text: string, words: string): TapedeckError {
    const forms = `a position (such as ${this.written(42)}) nor a time (2026-01-31T12:00:00Z)${words}`;
    return invalidArgument(`${field} "${text}" is neither ${forms}`, field);
  }
}

/** The last sequence recorded at a time or before; undefined while the time has not passed for the log. */
export async function lastBy(log: LogReader, time: Date): Promise<number | undefined> {
  // Asked first: if the time has passed by now, everything recorded after this is recorded later than the time.
  const { at, lastSeq } = await log.now();
  const later = await log.firstSince(new Date(time.getTime() + 1));
  if (later !== undefined) return later - 1;
  return at > time ? lastSeq : undefined;
}
