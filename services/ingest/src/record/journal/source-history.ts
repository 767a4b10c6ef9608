import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";
import { type KnownConnection, KnownConnections } from "./known-connections.ts";
import { type KnownSession, KnownSessions } from "./known-sessions.ts";
import { RecordedGaps, type ReportedGap } from "./recorded-gaps.ts";

/** A control call that may have put an event into the upstream's stream. */
export type KnownCall = {
  readonly call: string;
  readonly method: string;
  readonly request: Uint8Array;
  readonly offset: Offset;
};

/**
 * What Tapedeck itself has recorded about a source, as far as a recorder needs it to continue. It is learnt from the log
 * at the start, and kept up to date with each event that is added.
 */
export class SourceHistory {
  readonly #sessions = new KnownSessions();
  readonly #connections = new KnownConnections();
  readonly #gaps = new RecordedGaps();
  readonly #calls = new Map<string, KnownCall>();
  #known = false;
  #expires = false;
  #lastAt: Timestamp | undefined;

  /** The source has events. */
  get known(): boolean {
    return this.#known;
  }

  /** The session that was begun or continued last, open or ended. */
  get session(): KnownSession | undefined {
    return this.#sessions.current;
  }

  /** All sessions, the newest first. */
  get sessions(): readonly KnownSession[] {
    return this.#sessions.newestFirst;
  }

  get connection(): KnownConnection | undefined {
    return this.#connections.current;
  }

  get calls(): readonly KnownCall[] {
    return [...this.#calls.values()];
  }

  /** Text of the source may have expired. It never does before a source.checkpoint, or the first message, allows it. */
  get expires(): boolean {
    return this.#expires;
  }

  /** When the session's last event was observed. */
  get lastAt(): Timestamp | undefined {
    return this.#lastAt;
  }

  /** An earlier connection: all of its frames are in the log, or were erased. */
  isOver(connection: string): boolean {
    const session = this.#connections.interrupted(connection)?.session ?? "";
    return this.#connections.isOver(connection) || (session !== "" && this.#sessions.get(session) === undefined);
  }

  /** A connection whose tap had not pushed everything when another tap's connection was recorded. */
  interrupted(connection: string): KnownConnection | undefined {
    return this.#connections.interrupted(connection);
  }

  /** Whether a gap of the channel at this time is recorded. */
  hasGap(channel: string, at: Timestamp): boolean {
    return this.#gaps.has(channel, at);
  }

  /** Whether the session has recorded this gap; see RecordedGaps. */
  hasReportedGap(session: string, gap: ReportedGap, at: Timestamp): boolean {
    return this.#gaps.hasReported(session, gap, at);
  }

  /** Whether labels of the session that were observed at this time are recorded. */
  hasLabels(session: string, at: Timestamp): boolean {
    return this.#sessions.get(session)?.labelledAt.has(timestampKey(at)) ?? false;
  }

  /** Takes any event of the source. `offset`: the event's offset, or the log's end when the event was appended. */
  observe(event: Event, offset: Offset): void {
    this.#known = true;
    if (event.session !== "") this.#lastAt = event.observed_at;
    if (event.channel !== ownChannel) return;
    if (event.kind === "source.checkpoint") this.#expires = true;
    if (event.kind.startsWith("session.")) this.#observeSession(event, offset);
    if (event.kind.startsWith("upstream.")) this.#observeUpstream(event, offset);
    if (event.detail?.$case === "control") this.#observeControl(event, offset);
  }

  #observeSession(event: Event, offset: Offset): void {
    this.#gaps.observe(event);
    this.#sessions.observe(event, offset);
    if (event.kind === "session.started") {
      this.#calls.clear();
      this.#connections.sessionBegan(event.session);
    }
    if (event.kind === "session.erased") this.#connections.sessionErased(event.session);
  }

  #observeUpstream(event: Event, offset: Offset): void {
    if (event.detail?.$case !== "upstream") return;
    const upstream = event.detail.value;
    const { current } = this.#connections;
    if (event.kind === "upstream.connected") {
      const before = this.#sessions.get(current?.session ?? "");
      if (before !== undefined && current?.closed === false) before.cutOff = true;
      this.#connections.connect(upstream, offset);
      return;
    }
    if (current?.id !== upstream.connection) return;
    if (event.kind === "upstream.restored") {
      this.#connections.restored(event.session);
      this.#sessions.continueSession(event.session);
    }
    if (event.kind === "upstream.lost") this.#connections.lost(upstream, event);
  }

  #observeControl({ kind, detail }: Event, offset: Offset): void {
    if (detail?.$case !== "control") return;
    const { call, forwarded_method: method, forwarded_request: request } = detail.value;
    if (kind === "control.requested") this.#calls.set(call, { call, method, request, offset });
    if (kind === "control.rejected") this.#calls.delete(call);
  }
}
