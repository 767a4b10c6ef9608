import { jetstreamManager } from "@nats-io/jetstream";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { eventsIn, labelsOf, sessionOf } from "@tapedeck/shared/log/batch/batch";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart, type Offset, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { channelFilter, sourceFilter, streamOf, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { parseSourceName, type SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import { removalPace } from "./removal-pace.ts";

export type SessionToErase = {
  readonly source: SourceName;
  readonly session: string;
  /** The end of the log when the session was looked for. It has ended, so nothing of it comes after that. */
  readonly lastSeq: Sequence;
  /** No message of the session is after this: the next session of the source has begun. */
  readonly endSeq: Sequence;
  /** The ordinals of its events on Tapedeck's own channel that are in the log, without the mark. */
  readonly ownOrdinals: readonly number[];
  /** The mark is behind all of it. */
  readonly marked: boolean;
  /** It has neither ended nor lost its upstream, and its tap is there or waited for. */
  readonly goesOn: boolean;
};

export type EraseDeps = {
  readonly nats: NatsConnection;
  /** The one of the log. */
  readonly workspace: string;
  readonly log: {
    readonly epoch: string;
    readonly reader: Pick<LogReader, "bounds" | "history">;
    readonly stored: Log["stored"];
  };
  readonly signal: AbortSignal;
};

/** Where a session is; undefined where the log has nothing of it, not even a mark. Reads what the log says of sessions. */
export async function findSource(
  session: string,
  { workspace, log, signal }: EraseDeps,
): Promise<SourceName | undefined> {
  const { lastOffset } = await log.reader.bounds();
  const subjects = sessionSubjects(workspace);
  let source: SourceName | undefined;
  for await (const { event } of log.reader.history({ afterOffset: logStart, subjects }, lastOffset, signal)) {
    if (event.session === session) source = parseSourceName(event.source);
  }
  return source;
}

/** The subjects of what the log of a workspace says of sessions. */
export function sessionSubjects(workspace: string): readonly string[] {
  return [workspaceFilter(workspace).replace(/>$/, `*.*.*.${ownChannel}.session`)];
}

export type SessionLocation = { readonly source: SourceName; readonly session: string; readonly afterOffset: Offset };

/**
 * What Tapedeck's own channel says of a session: it is small, however large the session is. `untilOffset`: nothing of it is after
 * that, but maybe its mark. Rejects when the signal aborts: a part of the ordinals would be taken for all of them.
 */
export async function findIn(
  location: SessionLocation,
  deps: EraseDeps,
  untilOffset?: Offset,
): Promise<SessionToErase> {
  const [found] = await findAllIn([location], deps, untilOffset);
  if (found === undefined) throw new Error("nothing was looked for");
  return found;
}

/** The same of several sessions of one source, the oldest first: its channel is read once. */
export async function findAllIn(
  locations: readonly SessionLocation[],
  { log, signal }: EraseDeps,
  untilOffset?: Offset,
): Promise<readonly SessionToErase[]> {
  const [first] = locations;
  if (first === undefined) return [];
  const lastOffset = untilOffset ?? (await log.reader.bounds()).lastOffset;
  const sessions = new Map(locations.map((one) => [one.session, new OwnEvents(one)]));
  /** The sessions after whose events no other session's came. */
  const open = new Set<OwnEvents>();
  const from = { afterOffset: first.afterOffset, subjects: [channelFilter(first.source, ownChannel)] };
  for await (const { event, offset } of log.reader.history(from, lastOffset, signal)) {
    if (event.session === "") continue;
    const own = sessions.get(event.session);
    for (const other of open) {
      if (other === own) continue;
      other.endOffset = offset;
      open.delete(other);
    }
    if (own === undefined) continue;
    own.add(event);
    open.add(own);
  }
  signal.throwIfAborted();
  return [...sessions.values()].map((own) => own.upTo(lastOffset));
}

class OwnEvents {
  readonly #location: SessionLocation;
  readonly #ordinals: number[] = [];
  #marked = false;
  #goesOn = false;
  /** Undefined while no event of another session came after its own. */
  endOffset: Offset | undefined;

  constructor(location: SessionLocation) {
    this.#location = location;
  }

  add(event: Event): void {
    this.endOffset = undefined;
    // Events after a mark were imported anew.
    this.#marked = event.kind === "session.erased";
    if (this.#marked) return;
    this.#ordinals.push(Number(event.ordinal));
    this.#goesOn = goesOnAfter(event) ?? this.#goesOn;
  }

  upTo(lastOffset: Offset): SessionToErase {
    const { source, session } = this.#location;
    const [lastSeq, endSeq] = [sequenceOf(lastOffset), sequenceOf(this.endOffset ?? lastOffset)];
    return {
      source,
      session,
      lastSeq,
      endSeq,
      ownOrdinals: this.#ordinals,
      marked: this.#marked,
      goesOn: this.#goesOn,
    };
  }
}

/** Undefined for an event that does not concern it. */
export function goesOnAfter({ kind, detail }: Event): boolean | undefined {
  if (kind === "session.started" || kind === "upstream.restored") return true;
  if (kind === "session.ended" || kind === "session.lost") return false;
  if (kind !== "upstream.lost" || detail?.$case !== "upstream" || detail.value.channel !== "") return undefined;
  // A silent tap is awaited, and continues the session when it is back.
  return detail.value.unheard ? undefined : false;
}

export type HeldMessage = { readonly seq: Sequence; readonly events: number };

/** How many messages are read before the reader rests. */
const stride = 100;

/** The session's messages, oldest first, without its mark, at the pace of all removals. Both sequences are inclusive. */
export async function* messagesOf(
  { source, session, first, last }: Pick<SessionToErase, "source" | "session"> & { first: Sequence; last: Sequence },
  { log, signal }: EraseDeps,
): AsyncGenerator<HeldMessage, void> {
  if (first > last) return;
  let read = 0;
  let since = performance.now();
  for await (const { seq, data } of log.stored({ first, last, subjects: [sourceFilter(source)] }, signal)) {
    if (++read % stride === 0) {
      await removalPace.rest(performance.now() - since, signal);
      since = performance.now();
    }
    const events = heldIn(data);
    const [head] = events;
    // A message holds events of one session only.
    if (head === undefined || sessionOf(head) !== session) continue;
    if (labelsOf(head).kind !== "session.erased") yield { seq, events: events.length };
  }
}

function heldIn(data: Uint8Array): readonly Uint8Array[] {
  try {
    return eventsIn(data);
  } catch {
    return []; // something else than events, of another program
  }
}

/** Removes one message of a log; its bytes are overwritten on the disk. Nothing happens if it is gone. */
export async function removeMessage(
  { nats, workspace }: Pick<EraseDeps, "nats" | "workspace">,
  seq: Sequence,
): Promise<void> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  const stream = streamOf(workspace);
  await jsm.streams.deleteMessage(stream, seq, true).catch(async (cause: unknown) => {
    // Text may have expired since it was found, and a call before may have been answered too late.
    if ((await jsm.streams.getMessage(stream, { seq })) !== null) throw cause;
  });
}
