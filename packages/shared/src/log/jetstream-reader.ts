import type { MsgRequest } from "@nats-io/jetstream";
import { TapedeckError } from "../errors/errors.ts";
import { type Turns, turns } from "../streams/turns.ts";
import type { StreamAccess } from "./consumer.ts";
import { decoder, type Warn } from "./decode.ts";
import type { FormerEpoch } from "./epoch.ts";
import { followLog } from "./follow.ts";
import { readHistory } from "./history.ts";
import type { LogReader } from "./log.ts";
import type { RingLimits } from "./ring.ts";
import { withoutCovered } from "./subject-match.ts";
import { everySubject } from "./subjects.ts";
import { openTail, type Tail } from "./tail.ts";

export type ReaderDeps = StreamAccess & {
  readonly epoch: string;
  readonly former: readonly FormerEpoch[];
  readonly warn: Warn;
  readonly historyReaders: number;
  readonly limits?: RingLimits;
};

export function jetstreamReader(deps: ReaderDeps): LogReader & { close(): Promise<void> } {
  const { jsm, streamName, epoch, former } = deps;
  const warn = seldom(deps.warn);
  const decode = decoder(deps.warn);
  const historyTurns: Turns = turns(deps.historyReaders);
  let tail: Tail | undefined;

  const bounds: LogReader["bounds"] = async () => {
    const { state } = await away(jsm.streams.info(streamName));
    return { firstSeq: Math.max(1, state.first_seq), lastSeq: state.last_seq };
  };

  const lastMatch: LogReader["lastMatch"] = async (subjects) => {
    // All: not the stream's last sequence, whose message may be gone, and not ">", which finds nothing then (2.15.1).
    const lasts = withoutCovered(subjects.length === 0 ? [everySubject] : subjects).map((subject) =>
      jsm.streams.getMessage(streamName, { last_by_subj: subject }),
    );
    return Math.max(...(await away(Promise.all(lasts))).map((message) => message?.seq ?? 0));
  };

  const history: LogReader["history"] = (from, untilSeq, signal) =>
    readHistory({ ...deps, warn, decode, turns: historyTurns, lastMatch }, from, untilSeq, signal);

  return {
    epoch,
    former,
    bounds,
    lastMatch,
    history,

    async firstSince(time) {
      // The server's leader takes a start time here as well; only the client's type does not know.
      const ms = Math.min(Math.max(time.getTime(), 0), lastMoment);
      const query = { start_time: new Date(ms).toISOString() } as unknown as MsgRequest;
      return (await away(jsm.streams.getMessage(streamName, query)))?.seq;
    },

    follow(from, options) {
      tail ??= openTail({ ...deps, warn, decode });
      return followLog({ tail, bounds, lastMatch, history }, from, options);
    },

    close: async () => tail?.[Symbol.asyncDispose](),
  };
}

/** The server counts nanoseconds since 1970 in 64 bits, which end in 2262: what is later would be before everything. */
const lastMoment = Date.UTC(2262, 0);

/** What clients are told when the log does not answer. */
function away<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((cause: unknown) => {
    const isDeleted = cause instanceof Error && cause.name === "StreamNotFoundError";
    const text = isDeleted
      ? "the log was deleted: start Tapedeck again to begin a new one"
      : "the log can't be reached: try again in a moment";
    throw new TapedeckError("not_ready", text, {}, { cause });
  });
}

/** The same warning of many readers counts once in a while: when the log is away, it is away for all. */
function seldom(warn: Warn): Warn {
  const lastTold = new Map<string, number>();
  return (message, fields) => {
    const now = performance.now();
    if (now - (lastTold.get(message) ?? Number.NEGATIVE_INFINITY) < 5_000) return;
    lastTold.set(message, now);
    warn(message, fields);
  };
}
