import { jetstreamManager } from "@nats-io/jetstream";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { logStart, type Offset, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { everySubject, sourceFilter, streamName } from "@tapedeck/shared/log/subjects";
import { parseSourceName, type SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import { openEnds } from "../../damage/ends.ts";
import { rangesOf } from "../../damage/ranges.ts";
import { appendFact } from "../journal/append-fact.ts";
import { LostRaceError } from "../journal/settle.ts";
import type { SourceJournalOptions } from "../journal/source-journal.ts";
import { MoveMarks } from "../moves/move-marks.ts";
import { sessionErased } from "../own-facts/session-facts.ts";

export type SessionToErase = {
  readonly source: SourceName;
  readonly session: string;
  /** The messages that the log holds of it, without the mark, and how many events each has. */
  readonly messages: readonly HeldMessage[];
  /** Those of them that stand on Tapedeck's own channel, by ordinal. */
  readonly ownOrdinals: readonly number[];
  /** The mark is behind all of it: an earlier erasure was cut short, or this one has nothing left to do. */
  readonly marked: boolean;
  /** It has neither ended nor lost its upstream, and its tap is there or waited for. */
  readonly goesOn: boolean;
};

export type HeldMessage = { readonly seq: Sequence; readonly events: number };

export type EraseDeps = {
  readonly nats: NatsConnection;
  /** `ends`: where they are open already. */
  readonly log: SourceJournalOptions["log"] & Pick<Log, "epoch">;
  readonly signal: AbortSignal;
};

/** Everything that the log holds of a session; undefined when it holds nothing. Reads all of the log's own channel. */
export async function findSession(session: string, deps: EraseDeps): Promise<SessionToErase | undefined> {
  const { log, signal } = deps;
  const { lastOffset } = await log.reader.bounds();
  const own = { afterOffset: logStart, subjects: [everySubject.replace(/>$/, "*.*.*.*.tapedeck.session")] };
  let source: SourceName | undefined;
  for await (const { event } of log.reader.history(own, lastOffset, signal)) {
    if (event.session === session) source = parseSourceName(event.source);
  }
  return source === undefined ? undefined : findIn({ source, session, afterOffset: logStart }, deps);
}

export type SessionLocation = { readonly source: SourceName; readonly session: string; readonly afterOffset: Offset };

/** The same for a session whose place is known; reads the source's later events. */
export async function findIn(
  { source, session, afterOffset }: SessionLocation,
  { log, signal }: EraseDeps,
): Promise<SessionToErase> {
  const { lastOffset } = await log.reader.bounds();
  const events = new Map<Sequence, number>();
  const ownOrdinals: number[] = [];
  let marked = false;
  let goesOn = false;
  for await (const { event, offset } of log.reader.history(
    { afterOffset, subjects: [sourceFilter(source)] },
    lastOffset,
    signal,
  )) {
    if (event.session !== session) continue;
    if (event.kind === "session.erased") {
      marked = true;
      continue;
    }
    // A message holds events of one session only.
    const seq = sequenceOf(offset);
    events.set(seq, (events.get(seq) ?? 0) + 1);
    if (event.channel === ownChannel) ownOrdinals.push(Number(event.ordinal));
    // Events after a mark were imported anew.
    marked = false;
    goesOn = goesOnAfter(event) ?? goesOn;
  }
  const messages = [...events].map(([seq, count]) => ({ seq, events: count }));
  return { source, session, messages, ownOrdinals, marked, goesOn };
}

/** Undefined for an event that does not concern it. */
function goesOnAfter({ kind, detail }: Event): boolean | undefined {
  if (kind === "session.started" || kind === "upstream.restored") return true;
  if (kind === "session.ended" || kind === "session.lost") return false;
  if (kind !== "upstream.lost" || detail?.$case !== "upstream" || detail.value.channel !== "") return undefined;
  // A silent tap is awaited, and continues the session when it is back.
  return detail.value.unheard ? undefined : false;
}

/** How many messages are being removed at a time. */
const atOnce = 16;

/**
 * Removes a session from the log. The mark comes first: it notifies query, and carries the cursor on where the session
 * was the source's last. After an interruption, another call continues it. `removed` is called with the number of
 * events gone.
 */
export async function eraseSession(
  found: SessionToErase,
  deps: EraseDeps,
  removed: (count: number) => void,
): Promise<void> {
  const { signal, nats } = deps;
  if (!found.marked) await mark(found, deps);
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  const left = [...found.messages];
  let count = 0;
  const remove = async () => {
    for (let message = left.pop(); message !== undefined && !signal.aborted; message = left.pop()) {
      // The bytes are overwritten on the disk.
      await jsm.streams.deleteMessage(streamName, message.seq, true);
      count += message.events;
      removed(count);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, remove));
}

/**
 * A recorder that is writing this source just now notices, reads the log again and continues; or it was faster, and we
 * do.
 */
async function mark({ source, session, ownOrdinals }: SessionToErase, { nats, log, signal }: EraseDeps): Promise<void> {
  await using opened = log.ends === undefined ? await openEnds(nats, { epoch: log.epoch }) : undefined;
  const ends = log.ends ?? opened;
  const ordinals = rangesOf(ownOrdinals).map(({ first, last }) => ({
    channel: ownChannel,
    first: BigInt(first),
    last: BigInt(last),
  }));
  const fact = sessionErased(session, ordinals);
  for (;;) {
    try {
      const { writer, reader, moves = new MoveMarks(nats) } = log;
      return await appendFact({ log: { writer, reader, ends, moves }, source, session, fact, signal });
    } catch (cause) {
      if (!(cause instanceof LostRaceError)) throw cause;
    }
  }
}
