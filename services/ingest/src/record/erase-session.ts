import { jetstreamManager } from "@nats-io/jetstream";
import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { everySubject, sourceFilter, streamName } from "@tapedeck/shared/log/subjects";
import { parseSourceName, type SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import { openBook } from "./book.ts";
import { momentNow } from "./moment.ts";
import { LostRaceError } from "./writer.ts";

export type SessionToErase = {
  readonly source: SourceName;
  readonly session: string;
  /** Sequences of what the log holds of it, without the mark. */
  readonly sequences: readonly number[];
  /** The mark is behind all of it: an earlier erasure was cut short, or this one has nothing left to do. */
  readonly marked: boolean;
  /** It has neither ended nor lost its upstream. */
  readonly goesOn: boolean;
};

export type EraseDeps = { readonly nats: NatsConnection; readonly log: Log; readonly signal: AbortSignal };

/** Everything that the log holds of a session; undefined when it holds nothing. */
export async function findSession(session: string, { log, signal }: EraseDeps): Promise<SessionToErase | undefined> {
  const { lastSeq } = await log.reader.bounds();
  const own = { afterSeq: 0, subjects: [everySubject.replace(/>$/, "*.*.*.*.tapedeck.session")] };
  let source: SourceName | undefined;
  for await (const { event } of log.reader.history(own, lastSeq, signal)) {
    if (event.session === session) source = parseSourceName(event.source);
  }
  if (source === undefined) return undefined;

  const sequences: number[] = [];
  let marked = false;
  let goesOn = false;
  for await (const { event, seq } of log.reader.history(
    { afterSeq: 0, subjects: [sourceFilter(source)] },
    lastSeq,
    signal,
  )) {
    if (event.session !== session) continue;
    if (event.kind === "session.erased") {
      marked = true;
      continue;
    }
    sequences.push(seq);
    // What comes after a mark was imported anew.
    marked = false;
    if (event.kind === "session.started" || event.kind === "upstream.restored") goesOn = true;
    const isLoss = event.detail?.$case === "upstream" && event.detail.value.channel === "";
    if (event.kind === "session.ended" || (event.kind === "upstream.lost" && isLoss)) goesOn = false;
  }
  return { source, session, sequences, marked, goesOn };
}

/** How many messages are being removed at a time. */
const atOnce = 16;

/**
 * Removes a session from the log. The mark comes first: it tells query, and carries the cursor on where the session was
 * the source's last. Cut short, it is gone on with by calling it again.
 */
export async function eraseSession(
  found: SessionToErase,
  deps: EraseDeps,
  removed: (count: number) => void,
): Promise<void> {
  const { signal, nats } = deps;
  if (!found.marked) await mark(found, deps);
  const jsm = await jetstreamManager(nats);
  const left = [...found.sequences];
  let count = 0;
  const remove = async () => {
    for (let seq = left.pop(); seq !== undefined && !signal.aborted; seq = left.pop()) {
      // The bytes are overwritten on the disk.
      await jsm.streams.deleteMessage(streamName, seq, true);
      count++;
      removed(count);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, remove));
}

/** A recorder that is writing this source just now notices, reads the log again and goes on; or it was faster, and we do. */
async function mark({ source, session }: SessionToErase, { log, signal }: EraseDeps): Promise<void> {
  for (;;) {
    try {
      await using book = await openBook({
        ...{ log, source, signal, hello: Hello.create({}), onAcknowledged: () => {}, onTrouble: () => {} },
      });
      const summary = "the session was erased";
      const erased = book.own(session, { kind: "session.erased", subject: session, summary }, momentNow());
      return await book.writer.reached(book.publish([erased]));
    } catch (cause) {
      if (!(cause instanceof LostRaceError)) throw cause;
    }
  }
}
