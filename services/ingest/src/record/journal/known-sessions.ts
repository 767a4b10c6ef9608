import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { justBefore, type Offset } from "@tapedeck/shared/log/offset";
import { timestampKey } from "@tapedeck/shared/time/timestamp";

export type KnownSession = {
  readonly id: string;
  open: boolean;
  readonly redact: "on" | "off";
  /** Version of the upstream's program, if it was reported. */
  readonly version: string;
  /** SHA-256 in hex by channel. */
  readonly fingerprints: Map<string, string>;
  /** The last session.described, by channel. */
  readonly described: Map<string, KnownDescription>;
  /** When the session's later labels were observed. */
  readonly labelledAt: Set<string>;
  /** Channels with an open gap: what they miss may still be recorded. */
  readonly openGaps: Set<string>;
  /** Its tap vanished without closing the last connection. What the process sent since then is unknown. */
  cutOff: boolean;
  /** All of its events come after this offset. */
  readonly afterOffset: Offset;
};

export type KnownDescription = {
  readonly state: Uint8Array;
  /** It has become the recorded state. */
  readonly adopted: boolean;
};

/** The sessions of a source, learnt from the events of Tapedeck's own channel. */
export class KnownSessions {
  readonly #sessions = new Map<string, KnownSession>();
  #current: KnownSession | undefined;

  /** The session that was begun or continued last, open or ended. */
  get current(): KnownSession | undefined {
    return this.#current;
  }

  get newestFirst(): readonly KnownSession[] {
    return [...this.#sessions.values()].reverse();
  }

  get(id: string): KnownSession | undefined {
    return this.#sessions.get(id);
  }

  /** Takes a session.* event. `offset`: the event's offset, or the log's end when the event was appended. */
  observe(event: Event, offset: Offset): void {
    if (event.kind === "session.started") this.#begin(event, offset);
    const session = this.#sessions.get(event.session);
    if (session === undefined) return;
    if (event.kind === "session.ended" || event.kind === "session.lost") session.open = false;
    if (event.kind === "session.erased") this.#erase(session);
    if (event.detail?.$case === "gap") {
      const { channel, open } = event.detail.value;
      if (event.kind === "session.gap_filled") session.openGaps.delete(channel);
      else if (open) session.openGaps.add(channel);
    }
    learnDetail(session, event);
  }

  /** A connection turned out to belong to this session, which continues. */
  continueSession(id: string): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.open = true;
    session.cutOff = false;
    this.#current = session;
  }

  #begin({ session: id, detail }: Event, offset: Offset): void {
    const fields = detail?.$case === "session_detail" ? detail.value : undefined;
    this.#current = {
      id,
      open: true,
      redact: fields?.redact === "off" ? "off" : "on",
      version: fields?.upstream_version ?? "",
      fingerprints: new Map(),
      described: new Map(),
      labelledAt: new Set(),
      openGaps: new Set(),
      cutOff: false,
      afterOffset: justBefore(offset),
    };
    this.#sessions.set(id, this.#current);
  }

  #erase(session: KnownSession): void {
    this.#sessions.delete(session.id);
    if (this.#current === session) this.#current = undefined;
  }
}

function learnDetail(session: KnownSession, { kind, detail, observed_at }: Event): void {
  if (detail?.$case !== "session_detail") return;
  const { fingerprint_channel, fingerprint_sha256, states, adopted = false } = detail.value;
  if (kind === "session.identified") {
    session.fingerprints.set(fingerprint_channel, Buffer.from(fingerprint_sha256).toString("hex"));
  }
  if (kind === "session.labelled") session.labelledAt.add(timestampKey(observed_at));
  for (const [channel, state] of Object.entries(states)) {
    session.described.set(channel, { state, adopted });
  }
}
