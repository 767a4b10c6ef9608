import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Look } from "@tapedeck/proto/tapedeck/v1/look";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { channelFilter, eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, momentNow, msBetween } from "@tapedeck/shared/time/moment";
import type {
  ObservationOutcome,
  Observing,
  Observed as Tellings,
  Watcher,
  YieldPoint,
} from "../../normalize/inventory/observing.ts";
import { isLarge } from "../../secrets/ahead/masked-apart.ts";
import { isText } from "../frames/numbering.ts";
import { originalOf, shaOf } from "../frames/original.ts";
import type { Commits } from "../journal/ack-watermark.ts";
import type { KnownSession, LogPast } from "../journal/source-history.ts";
import type { Book } from "../journal/source-journal.ts";
import { sessionGap } from "../own-facts/gap-facts.ts";
import type { Redact } from "./connection.ts";
import { assemble, type Connection, type FramePiece } from "./connection.ts";

export type LooksOptions = {
  readonly book: Book;
  readonly items: Commits;
  readonly reader: LogPast;
  readonly source: SourceName;
  readonly looking: Observing;
  readonly settings: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly frameBytes: number;
  /** Seconds that text lives in the log; absent: for ever. */
  readonly textTtl?: number | undefined;
  readonly onFrame: (channel: string, what: "recorded" | "repeated" | "unreadable" | "oversize") => void;
  /** Ends the session and begins another, which the connection belongs to from now on. */
  readonly anotherSession: (connection: Connection, at: Moment) => void;
};

/** Records what is concluded from looks at an upstream that tells no events. What a watcher remembers is in the log. */
export type Looks = {
  /** A new connection to the upstream, or looks that the tap had to drop: nobody looked since the last one. */
  connected(): void;
  has(channel: string): boolean;
  /** @throws TapedeckError invalid_argument for a look on a connection that has not said whose it is */
  take(connection: Connection, piece: FramePiece, at: Moment, index: bigint, redact: Redact): Promise<void>;
};

type Told = Exclude<ObservationOutcome, { what: "another session" }>;
type Gap = Extract<ObservationOutcome, { what: "gap" }>;

type Open = {
  readonly session: string;
  readonly watcher: Watcher<Tellings>;
  readonly mask: Observing["mask"];
  /** When the last recorded event of a channel was seen: what the tap pushes again from before it is known. */
  readonly seenUntil: Map<string, Moment | undefined>;
};

export function openLooks(options: LooksOptions): Looks {
  const { book, items, reader, source, looking, settings, signal, frameBytes, textTtl, onFrame, anotherSession } =
    options;
  let open: Open | undefined;
  /** What the look that is being read has had masked in another thread. */
  let apart: Observing["mask"] | undefined;
  /** To be told to the watcher before it sees the next look. */
  let begins: { readonly nobodyLooked: boolean } | undefined;

  async function watcherOf(session: KnownSession, redact: Redact): Promise<Open> {
    if (open?.session === session.id) return open;
    const mask: Observing["mask"] =
      redact === "on" ? (type, bytes) => (apart ?? looking.mask)(type, bytes) : (_, bytes) => ({ bytes, redacted: 0 });
    const watcher = looking.watch({
      ...{ mask, settings, frameBytes, textTtl },
      ...(redact === "on" && looking.maskAfter && { maskAfter: looking.maskAfter }),
    });
    const seenUntil = new Map<string, Moment | undefined>();
    // What is still on its way to the log belongs to its memory too.
    await book.writer.reached(book.writer.appended);
    const breathe = breather();
    for (const channel of looking.channels) {
      for await (const event of remembered({ reader, source, channel, session, signal })) {
        watcher.resume(event);
        seenUntil.set(channel, later(seenUntil.get(channel), event.observed_at));
        await breathe();
      }
    }
    signal.throwIfAborted();
    begins ??= { nobodyLooked: false };
    open = { session: session.id, watcher, mask, seenUntil };
    return open;
  }

  /** Text that would have expired: the log, and so the watcher, has forgotten whether it had it. */
  function isForgotten({ rejoined, resumedSeq }: Connection, seen: Told): boolean {
    if (textTtl === undefined || seen.what === "gap" || !(rejoined || resumedSeq !== undefined)) return false;
    const { occurredAt } = seen.facts[0];
    return occurredAt !== undefined && isText(seen.facts) && msBetween(occurredAt, momentNow()) >= textTtl * 1_000;
  }

  /** Gaps are events of Tapedeck's own, which no watcher remembers. */
  function publishGap(channel: string, { reason, output, until, after }: Gap, session: string): number {
    const fact = sessionGap(channel, reason, output === undefined ? {} : { output });
    const { detail } = fact;
    if (detail?.$case === "gap" && book.history.hasToldGap(session, detail.value, until)) return book.writer.appended;
    return book.publish([book.own(session, fact, until, after)]);
  }

  function publish(channel: string, seen: Told, session: string): number {
    if (seen.what === "gap") return publishGap(channel, seen, session);
    const { original, facts, observedAt } = seen;
    const bytes = original?.bytes ?? Buffer.alloc(0);
    if (bytes.byteLength > frameBytes) onFrame(channel, "oversize");
    onFrame(channel, facts[0].kind === "upstream.unreadable" ? "unreadable" : "recorded");
    const kept = original && originalOf(original.type, bytes, shaOf(bytes), frameBytes);
    return book.publish(book.numbers.frame(channel, facts, kept, { observedAt, redacted: original?.redacted ?? 0 }));
  }

  /** Undefined where that can't be done: then it is masked here. */
  async function maskedApart(channel: string, look: Uint8Array): Promise<Observing["mask"] | undefined> {
    try {
      return await looking.maskInThread?.(channel, look);
    } catch {
      return undefined;
    }
  }

  /** Gives how many messages have been added when all that this look tells is in the log. */
  async function record(
    connection: Connection,
    channel: string,
    bytes: Uint8Array,
    at: Moment,
    redact: Redact,
  ): Promise<number> {
    const { session } = book.history;
    if (session === undefined) return 0;
    const { watcher, mask, seenUntil } = await watcherOf(session, redact);
    if (begins?.nobodyLooked === false && watcher.restarted !== undefined) watcher.restarted();
    else if (begins !== undefined) watcher.connected();
    begins = undefined;
    const until = seenUntil.get(channel);
    // The tap may have pushed it before.
    const again = connection.resumedSeq !== undefined;
    if (again && until !== undefined && compareMoments(at, until) < 0) {
      onFrame(channel, "repeated");
      return 0;
    }
    // From here on all is new, also where the tap's clock is set back.
    seenUntil.delete(channel);
    let messages = 0;
    const breathe = breather();
    apart = redact === "on" && isLarge(bytes) ? await maskedApart(channel, bytes) : undefined;
    for (const seen of seenBy({ watcher, mask }, channel, bytes, at)) {
      if (seen.what === "yield") {
        await breathe();
        continue;
      }
      if (seen.what === "another session") {
        anotherSession(connection, at);
        return record(connection, channel, bytes, at, redact);
      }
      if (isForgotten(connection, seen)) onFrame(channel, "repeated");
      else messages = publish(channel, seen, session.id);
      await book.writer.room();
      await breathe();
    }
    apart = undefined;
    return messages;
  }

  return {
    connected() {
      begins = { nobodyLooked: true };
    },
    has: (channel) => looking.channels.includes(channel),
    async take(connection, { channel, bytes, more }, at, index, redact) {
      const { looked, session } = connection;
      if (session === "") {
        const message = `a look at ${channel} came before identified`;
        throw new TapedeckError("invalid_argument", message, { field: "channel" });
      }
      const pieces = looked.get(channel) ?? { partial: undefined };
      looked.set(channel, pieces);
      const whole = assemble(pieces, index, bytes, more);
      if (whole === undefined) return;
      const messages = await record(connection, channel, whole.bytes, at, redact);
      for (const one of whole.indexes) items.finished(one, messages);
    },
  };
}

function later(one: Moment | undefined, other: Moment | undefined): Moment | undefined {
  return one === undefined || (other !== undefined && compareMoments(other, one) > 0) ? other : one;
}

/** Watchers are total; should one fail after all, the look is unreadable and recording goes on. */
function* seenBy(
  { watcher, mask }: Pick<Open, "watcher" | "mask">,
  channel: string,
  bytes: Uint8Array,
  at: Moment,
): Generator<ObservationOutcome | YieldPoint, void> {
  try {
    yield* watcher.observe(channel, Look.decode(bytes), at);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const summary = `${bytes.byteLength} bytes that can't be read: ${reason}`;
    const original = { type: lookType, ...mask(lookType, bytes) };
    yield { what: "frame", original, facts: [{ kind: "upstream.unreadable", summary }], observedAt: at };
  }
}

const lookType = "tapedeck.v1.Look";

type Remembered = {
  readonly reader: LogPast;
  readonly source: SourceName;
  readonly channel: string;
  readonly session: KnownSession;
  readonly signal: AbortSignal;
};

/** The session's last complete description of a channel, and every event of the channel after it. */
async function* remembered(of: Remembered): AsyncGenerator<Event, void> {
  const { reader, source, channel, session, signal } = of;
  const description = await lastDescription(of);
  for (const { event } of description) yield event;
  const subjects = [channelFilter(source, channel)];
  const afterSeq = description.at(-1)?.seq ?? session.afterSeq;
  const until = await reader.lastMatch(subjects);
  for await (const { event } of reader.history({ afterSeq, subjects }, until, signal)) {
    // A description without its end came to nothing: the one before it counts, and all that came after that one.
    if (event.session === session.id && event.kind !== "host.described") yield event;
  }
}

type Described = { readonly seq: number; readonly event: Event };

/** Its parts in order; none when there is no complete one. Looks back further and further, as there may be many. */
async function lastDescription({
  reader,
  source,
  channel,
  session,
  signal,
}: Remembered): Promise<readonly Described[]> {
  const subjects = [eventSubject(source, channel, "host.described")];
  const last = await reader.lastMatch(subjects);
  for (let back = 1_000; last > session.afterSeq; back *= 8) {
    const afterSeq = Math.max(session.afterSeq, last - back);
    let found: readonly Described[] = [];
    let parts: readonly Described[] = [];
    for await (const { event, seq } of reader.history({ afterSeq, subjects }, last, signal)) {
      if (event.session !== session.id || event.detail?.$case !== "host") continue;
      const { part, parts: all } = event.detail.value;
      parts = part === 0 ? [{ seq, event }] : part === parts.length ? [...parts, { seq, event }] : [];
      if (parts.length === all) found = parts;
    }
    signal.throwIfAborted();
    if (found.length > 0 || afterSeq === session.afterSeq) return found;
  }
  return [];
}
