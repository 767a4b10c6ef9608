import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader } from "@tapedeck/shared/log/log";
import { formatPosition, parsePosition } from "@tapedeck/shared/log/position";

/** Positions and times, as clients give them, to sequences of this log (the table of DESIGN 6). */
export type Positions = {
  /** Sequence of one of our own positions (from query); 0 for none. */
  own(position: string): number;
  written(seq: number): string;
  /** `start`, `now`, a position or an RFC 3339 time → the sequence after which to begin. Decided by the log's leader. */
  resolveAfter(after: string, field?: string): Promise<number>;
  /** `until`: the last sequence to give, inclusive: a position, or the last one recorded at or before a time. */
  resolveUntil(until: string): Promise<number>;
};

const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

export function positions(log: LogReader): Positions {
  const sequence = async (text: string, field: string): Promise<number | Date> => {
    const position = parsePosition(text);
    if (position !== undefined) {
      if (position.epoch !== log.epoch) {
        throw new TapedeckError(
          "position_foreign",
          `position ${text} is from another log: this one is ${log.epoch}; start again from "start" or a time`,
          { field },
        );
      }
      const { firstSeq, lastSeq } = await log.bounds();
      const written = (seq: number) => formatPosition({ epoch: log.epoch, seq });
      if (position.seq > lastSeq) {
        throw new TapedeckError("position_future", `position ${text} is beyond the log's end ${written(lastSeq)}`, {
          field,
          latest: written(lastSeq),
        });
      }
      if (position.seq < firstSeq - 1) {
        throw new TapedeckError(
          "out_of_range",
          `position ${text} is no longer kept: the first kept event is at ${written(firstSeq)}`,
          { field, earliest: written(firstSeq - 1) },
        );
      }
      return position.seq;
    }
    if (time.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text);
    throw new TapedeckError(
      "invalid_argument",
      `${field} "${text}" is neither a position (such as ${log.epoch}-42), nor a time (RFC 3339, with a zone)${field === "after" ? ", nor start or now" : ""}`,
      { field },
    );
  };

  return {
    own: (position) => parsePosition(position)?.seq ?? 0,
    written: (seq) => formatPosition({ epoch: log.epoch, seq }),
    async resolveAfter(after, field = "after") {
      if (after === "now") return (await log.bounds()).lastSeq;
      if (after === "start") return Math.max(0, (await log.bounds()).firstSeq - 1);
      const found = await sequence(after, field);
      if (typeof found === "number") return found;
      const first = await log.firstSince(found);
      return first === undefined ? (await log.bounds()).lastSeq : first - 1;
    },
    async resolveUntil(until) {
      const found = await sequence(until, "until");
      if (typeof found === "number") return found;
      const after = await log.firstSince(new Date(found.getTime() + 1));
      return after === undefined ? (await log.bounds()).lastSeq : after - 1;
    },
  };
}
