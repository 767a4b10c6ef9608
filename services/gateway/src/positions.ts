import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { LogReader } from "@tapedeck/shared/log/log";
import { formatPosition, type Position, parsePosition } from "@tapedeck/shared/log/position";

/** Positions and times, as clients give them, to sequences of this log (the table of DESIGN 6). */
export type Positions = {
  /** Sequence of one of our own positions (from query); 0 for none. */
  own(position: string): number;
  written(seq: number): string;
  /** `start`, `now`, a position or an RFC 3339 time → the sequence after which to begin. Decided by the log's leader. */
  resolveAfter(after: string): Promise<number>;
  /** `until`: the last sequence to give, inclusive: a position, or the last one recorded at or before a time. */
  resolveUntil(until: string): Promise<number>;
};

export function positions(log: LogReader): Positions {
  const written = (seq: number) => formatPosition({ epoch: log.epoch, seq });

  const ofThisLog = async (position: Position, field: string): Promise<number> => {
    const text = formatPosition(position);
    if (position.epoch !== log.epoch) {
      const message = `position ${text} is from another log: this one is ${log.epoch}; begin again at "start" or a time`;
      throw new TapedeckError("position_foreign", message, { field });
    }
    const { firstSeq, lastSeq } = await log.bounds();
    if (position.seq > lastSeq) {
      const latest = written(lastSeq);
      throw new TapedeckError("position_future", `position ${text} is beyond the log's end ${latest}`, {
        field,
        latest,
      });
    }
    if (position.seq < firstSeq - 1) {
      const message = `position ${text} is no longer kept: the first kept event is ${written(firstSeq)}`;
      throw new TapedeckError("out_of_range", message, { field, earliest: written(firstSeq - 1) });
    }
    return position.seq;
  };
  const invalid = (field: string, text: string, words: string) =>
    new TapedeckError(
      "invalid_argument",
      `${field} "${text}" is neither a position (such as ${log.epoch}-42) nor a time (2026-01-31T12:00:00Z)${words}`,
      { field },
    );
  const lastSeq = async () => (await log.bounds()).lastSeq;
  const beforeFirstSince = async (time: Date) => {
    const first = await log.firstSince(time);
    return first === undefined ? lastSeq() : first - 1;
  };

  return {
    own: (position) => parsePosition(position)?.seq ?? 0,
    written,
    async resolveAfter(after) {
      const when = parseWhen(after);
      switch (when?.type) {
        case "now":
          return lastSeq();
        case "start":
          return Math.max(0, (await log.bounds()).firstSeq - 1);
        case "position":
          return ofThisLog(when.position, "after");
        case "time":
          return beforeFirstSince(when.time);
        default:
          throw invalid("after", after, ", nor start or now");
      }
    },
    async resolveUntil(until) {
      const when = parseWhen(until);
      if (when?.type === "position") return ofThisLog(when.position, "until");
      if (when?.type === "time") return beforeFirstSince(new Date(when.time.getTime() + 1));
      throw invalid("until", until, "");
    },
  };
}
