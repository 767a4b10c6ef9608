import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Cursor, StoredMessage } from "@tapedeck/shared/log/log";
import { ownValue } from "@tapedeck/shared/own-value";
import type { SourceName } from "@tapedeck/shared/source";
import { isAhead, type SourceEnd } from "../record/journal/ends.ts";
import { type PositionRange, sizeOf, without } from "../record/journal/ranges.ts";
import { isImport } from "../record/own-facts/import-facts.ts";

/** Events of one source that were in the log once and are not there now, without an erasure or a retention to explain it. */
export type Hole = {
  readonly source: SourceName;
  /** Session of the next event; empty before the first one. */
  readonly session: string;
  /** That, and the session of the event before. */
  readonly sessions: readonly string[];
  /** Sequences of the source's messages on both sides; undefined where there is none. */
  readonly after: number | undefined;
  readonly before: number | undefined;
  readonly missing: readonly Missing[];
  /** Events beside these, of sessions that nothing is left of. */
  readonly others: number;
};

/** Between which messages of its source a hole is. */
export type HolePlace = Pick<Hole, "source" | "sessions" | "after" | "before">;

export type Missing = PositionRange & {
  readonly channel: string;
  readonly events: number;
  /** Sequence of the message that holds the ordinal before them; 0 for none. */
  readonly since: number;
};

/** A message of the log. */
export type ScannedMessage = Pick<StoredMessage, "seq" | "recordedAtMs" | "expires"> & {
  readonly cursor: Cursor;
  /** How many events of each channel it holds. */
  readonly counts: Readonly<Record<string, number>>;
  /** The events that concern the log itself. */
  readonly events?: readonly Event[];
};

/** Ranges of ordinals, by session and channel. */
type Explained = Map<string, PositionRange[]>;

type Last = Pick<ScannedMessage, "seq" | "recordedAtMs" | "cursor">;

type KnownSession = Pick<Cursor, "ordinals" | "textTtl"> & Pick<ScannedMessage, "seq">;

/** Further holes are found by a later check. */
const maxHoles = 10_000;

/** How far the clocks of NATS and of this machine may disagree. */
const skewMs = 60_000;

export type SourceHolesOptions = {
  readonly source: SourceName;
  /** Asked for each message: text goes while the log is read. */
  readonly nowMs: () => number;
};

/**
 * Finds the holes of one source. Each message's cursor has the last ordinal of every channel, and the message shows how
 * many of them are its own. So two neighbours show how many stood between them, of which channels, and how many of
 * those may have expired since. The mark of an erasure lists what it took, and a gap what was lost before: both come
 * later, so holes are given at the end.
 */
export class SourceHoles {
  readonly #options: SourceHolesOptions;
  readonly #holes: Hole[] = [];
  readonly #sessions = new Map<string, KnownSession>();
  /** Sequence of the last mark, by session. */
  readonly #erased = new Map<string, number>();
  /** Earlier marks did not list what they took. */
  #vagueMark = 0;
  #lastMark = 0;
  /** Ordinals that marks of erasures list, and those that gaps do. */
  readonly #removed: Explained = new Map();
  readonly #lost: Explained = new Map();
  #last: Last | undefined;
  #isImporting = false;
  /** Text of the source had a life once. */
  #hasExpired = false;
  #reported = 0;

  constructor(options: SourceHolesOptions) {
    this.#options = options;
  }

  add(seen: ScannedMessage): void {
    for (const event of seen.events ?? []) this.#learn(event, seen.seq);
    if (seen.cursor.textTtl !== undefined) this.#hasExpired = true;
    this.#compare(seen, seen);
    // What is missing before the mark of a source was erased with it.
    if (seen.events?.some(({ kind }) => kind === "source.erased")) this.#holes.length = 0;
    this.#last = seen;
    const { ordinals, textTtl, session } = seen.cursor;
    this.#sessions.set(session, { seq: seen.seq, ordinals, ...(textTtl !== undefined && { textTtl }) });
  }

  /** The source had advanced this far when the check began. */
  end({ cursor, seq }: SourceEnd): void {
    if (this.#last !== undefined && !isAhead(cursor, this.#last.cursor)) return;
    this.#compare({ seq, cursor }, undefined);
  }

  /** Lost events that gaps in the log already report. */
  get reported(): number {
    return this.#reported;
  }

  /** `firstSeq`: messages before it may be gone on purpose. 1: none may. */
  holes(firstSeq: number): readonly Hole[] {
    return this.#left(firstSeq, [this.#removed, this.#lost]).map((hole) => {
      // A session can't disappear without its own events of Tapedeck's channel, unless that was reported or erased.
      const isKnown =
        hole.missing.some(({ channel }) => channel === ownChannel) && this.#lastMark < (hole.before ?? Infinity);
      return { ...hole, others: isKnown ? Math.max(0, hole.others) : 0 };
    });
  }

  /** The same with those that gaps in the log report already. */
  allHoles(firstSeq: number): readonly HolePlace[] {
    return this.#left(firstSeq, [this.#removed]);
  }

  #left(firstSeq: number, explained: readonly Explained[]): readonly Hole[] {
    return this.#holes.flatMap((hole) => {
      const lost = hole.missing.filter(({ since }) => since + 1 >= firstSeq);
      const missing = lost.flatMap((one) => this.#unexplained(hole, one, explained));
      return missing.length === 0 ? [] : [{ ...hole, missing }];
    });
  }

  #compare({ seq, cursor }: Pick<ScannedMessage, "seq" | "cursor">, carried: ScannedMessage | undefined): void {
    const missing = Object.keys(cursor.ordinals).flatMap((channel) => this.#missing(channel, cursor, carried));
    if (missing.length === 0 || this.#holes.length >= maxHoles) return;
    const before = carried === undefined ? undefined : seq;
    const others = this.#retainedBetween(cursor, carried) - countOf(missing);
    const { source } = this.#options;
    const { session } = cursor;
    const sessions = [...new Set([this.#last?.cursor.session ?? "", session])];
    this.#holes.push({ source, session, sessions, after: this.#last?.seq, before, missing, others });
  }

  #retainedBetween({ kept }: Cursor, carried: ScannedMessage | undefined): number {
    const before = this.#last === undefined ? 0 : this.#last.cursor.kept;
    if (kept === undefined || before === undefined) return 0;
    return kept - before - (carried === undefined || carried.expires ? 0 : sumOf(carried.counts));
  }

  #missing(channel: string, cursor: Cursor, carried: ScannedMessage | undefined): readonly Missing[] {
    const present = ownValue(carried?.counts, channel) ?? 0;
    const ordinal = ownValue(cursor.ordinals, channel) ?? 0;
    const before = this.#before(channel, cursor);
    const known = ownValue(before?.ordinals, channel) ?? 0;
    const jump = ordinal - known - present;
    if (jump <= 0) return [];
    const range = { channel, first: known + 1, last: ordinal - present, since: before?.seq ?? 0 };
    if (channel === ownChannel) return [{ ...range, events: jump }];
    const events = jump - this.#explainedByLife(channel, cursor, carried, jump);
    return events > 0 ? [{ ...range, events }] : [];
  }

  /** The last message with an ordinal of the channel. */
  #before(channel: string, { session }: Cursor): Pick<KnownSession, "ordinals" | "seq"> | undefined {
    const last = this.#last;
    const isOn = channel === ownChannel || last?.cursor.session === session;
    return isOn ? last && { ordinals: last.cursor.ordinals, seq: last.seq } : this.#sessions.get(session);
  }

  /** How many of the missing ordinals were text that has expired, or never were events. */
  #explainedByLife(channel: string, cursor: Cursor, carried: ScannedMessage | undefined, jump: number): number {
    const last = this.#last;
    const isOn = last?.cursor.session === cursor.session;
    // Text between two messages was written with the life of one of them.
    const lives = [last?.cursor.textTtl, cursor.textTtl].filter((life) => life !== undefined);
    const lifeS = lives.length === 0 ? 0 : Math.min(...lives);
    const earlier = isOn ? undefined : this.#sessions.get(cursor.session);
    const since = (counts: "texts" | "unused") =>
      (ownValue(cursor[counts], channel) ?? 0) - (isOn ? (ownValue(last?.cursor[counts], channel) ?? 0) : 0);
    const unused = since("unused");
    if (this.#isImporting && cursor.unused === undefined) return jump;
    // Without counts: where a session continues whose text expired, and in a log older than the counts.
    if (earlier !== undefined && (lifeS > 0 || earlier.textTtl !== undefined)) return jump;
    if (earlier !== undefined && cursor.kept === undefined && this.#hasExpired) return jump;
    if (lifeS === 0) return unused;
    if (cursor.texts === undefined || (isOn && last?.cursor.texts === undefined)) return jump;
    const missingTexts = since("texts") - (carried?.expires ? (ownValue(carried.counts, channel) ?? 0) : 0);
    const mayHaveExpired = (last?.recordedAtMs ?? 0) + lifeS * 1_000 <= this.#options.nowMs() + skewMs;
    return unused + (mayHaveExpired ? Math.max(0, missingTexts) : 0);
  }

  #learn(event: Event, seq: number): void {
    const { kind, session, detail } = event;
    if (kind === "session.erased") {
      const id = event.subject || session;
      const ranges = detail?.$case === "session_detail" ? (detail.value.erased?.ordinals ?? []) : [];
      this.#erased.set(id, seq);
      this.#lastMark = seq;
      this.#sessions.delete(id);
      if (ranges.length === 0) this.#vagueMark = seq;
      for (const range of ranges) explain(this.#removed, "", range);
    }
    if (kind === "upstream.connected") this.#isImporting = detail?.$case === "upstream" && isImport(detail.value);
    if (detail?.$case !== "gap" || detail.value.lost === undefined) return;
    this.#reported += Number(detail.value.lost.events);
    for (const range of detail.value.lost.ordinals) explain(this.#lost, session, range);
  }

  #unexplained(hole: Hole, one: Missing, explained: readonly Explained[]): readonly Missing[] {
    const { channel, since } = one;
    const before = hole.before ?? Number.POSITIVE_INFINITY;
    const mark = channel === ownChannel ? this.#vagueMark : (this.#erased.get(hole.session) ?? 0);
    if (mark >= before) return [];
    const key = channelKey(hole.session, channel);
    const left = without(
      one,
      explained.flatMap((ranges) => ranges.get(key) ?? []),
    );
    const size = sizeOf(left);
    // Between them may be text that has expired.
    let events = Math.min(one.events, size);
    return left.map((range) => {
      const share = Math.min(events, sizeOf([range]));
      events -= share;
      return { ...range, channel, since, events: share };
    });
  }
}

function explain(
  ranges: Explained,
  session: string,
  { channel, first, last }: { readonly channel: string; readonly first: bigint; readonly last: bigint },
): void {
  const key = channelKey(session, channel);
  const known = ranges.get(key) ?? [];
  ranges.set(key, known);
  known.push({ first: Number(first), last: Number(last) });
}

/** Tapedeck's own channel counts through all sessions of a source. */
function channelKey(session: string, channel: string): string {
  return channel === ownChannel ? channel : `${session}.${channel}`;
}

function sumOf(counts: ScannedMessage["counts"]): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function countOf(missing: readonly Missing[]): number {
  return missing.reduce((sum, { events }) => sum + events, 0);
}
