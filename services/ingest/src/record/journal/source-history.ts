import type { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Cursor, LogReader, LogWriter } from "@tapedeck/shared/log/log";
import { channelFilter, sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentKey } from "@tapedeck/shared/time/moment";
import { decodeTime } from "ulid";
import { isAhead, type LogEnds } from "../../damage/ends.ts";
import { ownChannel } from "../frames/numbering.ts";
import { isImport } from "../own-facts/import-facts.ts";

export type KnownSession = {
  readonly id: string;
  open: boolean;
  readonly redact: "on" | "off";
  /** Of the upstream's program, where it said so. */
  readonly version: string;
  /** SHA-256 in hex by channel. */
  readonly fingerprints: Map<string, string>;
  /** What session.described said last, by channel. */
  readonly described: Map<string, KnownDescription>;
  /** Channels whose gap is open: what they miss may still be had. */
  readonly openGaps: Set<string>;
  /** Its last connection was never closed by the tap, which is gone: what the process said since then is not known. */
  cutOff: boolean;
  /** All of its events come after this sequence. */
  readonly afterSeq: number;
};

export type KnownDescription = {
  readonly state: Uint8Array;
  readonly at: Moment | undefined;
  /** It has become the recorded state. */
  readonly adopted: boolean;
};

export type KnownConnection = {
  readonly id: string;
  readonly address: string;
  /** Empty in logs of before it was told. */
  readonly tap: string;
  /** Sequence of upstream.connected. */
  readonly seq: number;
  /** Empty as long as it is not known which session it belongs to, and when that one was erased. */
  session: string;
  /** It belongs to a session that was there before it. */
  rejoined: boolean;
  lost: boolean;
  /** Its tap has gone without a word after this moment; it may come back and go on. */
  unheardSince: Moment | undefined;
  /** When it was lost, by whoever told it. */
  lostAt: Moment | undefined;
  /** The tap has told its end, so nothing else comes from it. */
  closed: boolean;
  readonly lostChannels: Set<string>;
};

/** A control call that may have put an event into the upstream's stream. */
export type KnownCall = {
  readonly call: string;
  readonly method: string;
  readonly request: Uint8Array;
  readonly seq: number;
};

/**
 * What Tapedeck itself has said about a source, as far as recording needs it to go on: learnt from the log at the start,
 * and kept up to date with each event that is added.
 */
export type SourceHistory = {
  readonly known: boolean;
  /** The one that was begun or gone on with last, open or ended. */
  readonly session: KnownSession | undefined;
  /** All of them, the newest first. */
  readonly sessions: readonly KnownSession[];
  readonly connection: KnownConnection | undefined;
  /** Connections before the last one: all that they said is in the log, or was erased. */
  isOver(connection: string): boolean;
  /** A connection whose tap had not said all when another tap's connection was recorded. */
  interrupted(connection: string): KnownConnection | undefined;
  /** Gaps that are recorded, by channel and time. */
  hasGap(channel: string, at: Moment): boolean;
  /** The session has told it: what is missing of a job's output goes by its place there, all else by the look that told it. */
  hasToldGap(session: string, gap: ToldGap, at: Moment): boolean;
  readonly calls: readonly KnownCall[];
  /** Text of it may have expired: no text does before a source.checkpoint, or the first message, has said so. */
  readonly expires: boolean;
  /** When the session's last event was seen. */
  readonly lastAt: Moment | undefined;
  /** Takes any event of the source. `seq`: where the event stands, or where the log ended when it was appended. */
  observe(event: Event, seq: number): void;
};

export type ToldGap = Pick<GapDetail, "channel" | "reason" | "output">;

export function sourceHistory(): SourceHistory {
  const sessions = new Map<string, KnownSession>();
  let current: KnownSession | undefined;
  let connection: KnownConnection | undefined;
  let known = false;
  const over = new Set<string>();
  const interrupted = new Map<string, KnownConnection>();
  const gaps = new Set<string>();
  const toldGaps = new Set<string>();
  const calls = new Map<string, KnownCall>();
  let expires = false;
  let lastAt: Moment | undefined;

  const observeSession = (event: Event, seq: number) => {
    const detail = event.detail?.$case === "session_detail" ? event.detail.value : undefined;
    if (event.kind === "session.started") {
      current = {
        id: event.session,
        open: true,
        redact: detail?.redact === "off" ? "off" : "on",
        version: detail?.upstream_version ?? "",
        fingerprints: new Map(),
        described: new Map(),
        openGaps: new Set(),
        cutOff: false,
        afterSeq: seq - 1,
      };
      sessions.set(event.session, current);
      calls.clear();
      // Nothing of an import is told in the session.
      if (connection !== undefined && !connection.lost && !isImport(connection)) connection.session = event.session;
    }
    // What its tap may still say of it is no part of it any more.
    if (event.kind === "session.erased" && connection?.session === event.session) {
      connection.session = "";
      connection.rejoined = false;
    }
    const session = sessions.get(event.session);
    if (session === undefined) return;
    if (event.kind === "session.ended" || event.kind === "session.lost") session.open = false;
    if (event.detail?.$case === "gap") {
      const { channel, open } = event.detail.value;
      if (event.kind === "session.gap_filled") session.openGaps.delete(channel);
      else if (open) session.openGaps.add(channel);
    }
    if (event.kind === "session.erased") {
      sessions.delete(session.id);
      if (current === session) current = undefined;
    }
    if (detail === undefined) return;
    if (event.kind === "session.identified") {
      session.fingerprints.set(detail.fingerprint_channel, Buffer.from(detail.fingerprint_sha256).toString("hex"));
    }
    for (const [channel, state] of Object.entries(detail.states)) {
      session.described.set(channel, { state, at: event.observed_at, adopted: detail.adopted ?? false });
    }
  };

  const observeUpstream = (event: Event, seq: number) => {
    if (event.detail?.$case !== "upstream") return;
    const { connection: id, address, channel, tap, unheard } = event.detail.value;
    if (event.kind === "upstream.connected") {
      const before = sessions.get(connection?.session ?? "");
      if (before !== undefined && connection?.closed === false) before.cutOff = true;
      if (connection !== undefined && !connection.closed && connection.tap !== "" && connection.tap !== tap) {
        interrupted.set(connection.id, connection);
      } else if (connection !== undefined) over.add(connection.id);
      interrupted.delete(id);
      const begun = { session: "", rejoined: false, lost: false, unheardSince: undefined, closed: false };
      connection = { id, address, tap, seq, ...begun, lostAt: undefined, lostChannels: new Set<string>() };
      return;
    }
    if (connection?.id !== id) return;
    if (event.kind === "upstream.restored") {
      // A connection that goes on repeats nothing: what it belongs to is what it belonged to.
      if (connection.unheardSince !== undefined) connection.unheardSince = undefined;
      else {
        connection.session = event.session;
        connection.rejoined = true;
      }
      current = sessions.get(event.session) ?? current;
      if (current?.id === event.session) {
        current.open = true;
        current.cutOff = false;
      }
    }
    if (event.kind === "upstream.lost" && channel === "") {
      if (unheard) connection.unheardSince = event.not_before ?? event.observed_at;
      else {
        connection.lost = true;
        connection.lostAt = event.observed_at;
        connection.closed = !event.inferred;
      }
    }
    if (event.kind === "upstream.lost" && channel !== "") connection.lostChannels.add(channel);
  };

  return {
    get known() {
      return known;
    },
    get session() {
      return current;
    },
    get sessions() {
      return [...sessions.values()].reverse();
    },
    get connection() {
      return connection;
    },
    isOver(id) {
      const session = interrupted.get(id)?.session ?? "";
      return over.has(id) || (session !== "" && !sessions.has(session));
    },
    interrupted: (id) => interrupted.get(id),
    hasGap: (channel, at) => gaps.has(`${channel}@${momentKey(at)}`),
    hasToldGap: (session, gap, at) => toldGaps.has(gapKey(session, gap, at)),
    get calls() {
      return [...calls.values()];
    },
    get expires() {
      return expires;
    },
    get lastAt() {
      return lastAt;
    },
    observe(event, seq) {
      known = true;
      if (event.session !== "") lastAt = event.observed_at;
      if (event.channel !== ownChannel) return;
      if (event.kind.startsWith("session.")) observeSession(event, seq);
      else if (event.kind.startsWith("upstream.")) observeUpstream(event, seq);
      if (event.kind === "source.checkpoint") expires = true;
      if (event.kind === "session.gap" && event.detail?.$case === "gap") {
        gaps.add(`${event.detail.value.channel}@${momentKey(event.observed_at)}`);
        toldGaps.add(gapKey(event.session, event.detail.value, event.observed_at));
      }
      if (event.detail?.$case === "control") {
        const { call, forwarded_method: method, forwarded_request: request } = event.detail.value;
        if (event.kind === "control.requested") calls.set(call, { call, method, request, seq });
        if (event.kind === "control.rejected") calls.delete(call);
      }
    },
  };
}

function gapKey(session: string, { channel, reason, output }: ToldGap, at: Moment | undefined): string {
  const place = output && [output.job, String(output.index), String(output.next_index ?? "")];
  return JSON.stringify([session, channel, ...(place ?? [momentKey(at), reason])]);
}

/** What recording needs of the log's reading half. */
export type LogPast = Pick<LogReader, "bounds" | "lastMatch" | "firstSince" | "history">;

/** What recording needs of how far sources have come, by another witness than the log. */
export type SourceEnds = Pick<LogEnds, "endOf" | "reached">;

export type LoadedHistory = {
  readonly history: SourceHistory;
  /** As the log gives it: what is written next comes after it. */
  readonly lastSeq: number;
  /** Of the source's last message, also where the log has lost that one; undefined for a source that never had any. */
  readonly cursor: Cursor | undefined;
  /** The last message is one that stays for ever. */
  readonly lastStays: boolean;
  /** At most so many messages of the source came after that cursor and have expired. */
  readonly expired: number;
  /** Who wrote the last message that the log has; undefined where it has none. */
  readonly lastWriter: string | undefined;
};

/** A history as it was when the source's last message was this one. */
export type RememberedHistory = {
  readonly history: SourceHistory;
  readonly lastSeq: number;
  readonly lastWriter: string | undefined;
  readonly lastStays: boolean;
  /** By our clock, when that message was the last. */
  readonly at: number;
};

/** What a tap pushes again was recorded when its last acknowledgement was on its way: not longer ago than this. */
const reachMs = 30 * 24 * 3_600_000;

type LoadDeps = {
  readonly log: { readonly writer: LogWriter; readonly reader: LogPast; readonly ends?: SourceEnds | undefined };
  readonly source: SourceName;
  readonly signal: AbortSignal;
  /** However long ago a session began, it may be gone on with (a rkt host comes back to an earlier data directory). */
  readonly allSessions: boolean;
  /** Of all sessions; taken instead of reading where nothing was written since. */
  readonly remembered?: RememberedHistory | undefined;
};

/** Reads what the log says about a source. Waits while the log is away; rejects when the signal aborts. */
export async function loadHistory({ log, source, signal, allSessions, remembered }: LoadDeps): Promise<LoadedHistory> {
  const [last, end] = await Promise.all([
    insisting(() => log.writer.lastOf(source), signal),
    insisting(async () => log.ends?.endOf(source), signal),
  ]);
  const lastWriter = last?.mark.writer;
  const isLost = end !== undefined && (last === undefined || isAhead(end.cursor, last.mark.cursor));
  const cursor = isLost ? end.cursor : last?.mark.cursor;
  const lastSeq = last?.seq ?? 0;
  const loaded = { lastSeq, cursor, lastWriter };
  if (cursor === undefined) return { ...loaded, history: sourceHistory(), lastStays: true, expired: 0 };
  const { session, textTtl } = cursor;
  // Half of the time, as the clocks may disagree here too; a recorder that is alive lets no text be the last for longer.
  const isRecent = (at: number) => textTtl === undefined || Date.now() - at < (textTtl * 1_000) / 2;
  const isSame = remembered?.lastSeq === lastSeq && remembered.lastWriter === lastWriter && !isLost;
  if (remembered !== undefined && isSame && isRecent(remembered.at)) {
    return { ...loaded, history: remembered.history, lastStays: remembered.lastStays, expired: 0 };
  }
  const { lastSeq: logEnd } = await insisting(() => log.reader.bounds(), signal);
  // Where the last message can't be read, those before it can.
  const until = last?.seq ?? logEnd;
  const since = Math.min(Date.now(), session === "" ? Number.POSITIVE_INFINITY : decodeTime(session)) - reachMs;
  const first = await insisting(() => log.reader.firstSince(new Date(Math.max(0, since))), signal);

  let lastStays = false;
  let recordedAt = 0;
  const read = async (afterSeq: number): Promise<SourceHistory> => {
    const history = sourceHistory();
    const breathe = breather();
    for await (const { event, seq } of log.reader.history(
      { afterSeq, subjects: [channelFilter(source, ownChannel)] },
      until,
      signal,
    )) {
      history.observe(event, seq);
      await breathe();
    }
    const atEnd = { afterSeq: until - 1, subjects: [sourceFilter(source)] };
    for await (const { event, seq, recordedAt: time } of log.reader.history(atEnd, until, signal)) {
      lastStays = event.channel === ownChannel;
      recordedAt = time.getTime();
      if (event.channel !== ownChannel) history.observe(event, seq);
    }
    signal.throwIfAborted();
    return history;
  };

  const recent = await read(allSessions ? 0 : Math.max(0, (first ?? 1) - 1));
  // The log's clock and ours may disagree: then all of it is read.
  const history = recent.session?.id === session || session === "" ? recent : await read(0);
  if (isRecent(recordedAt)) return { ...loaded, history, lastStays, expired: 0 };
  return { ...loaded, history, lastStays, expired: Math.max(0, logEnd - (isLost ? end.seq : until)) };
}

async function insisting<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const waits = backoff(50, 2_000);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch {
      await pause(waits.next(), signal);
    }
  }
}
