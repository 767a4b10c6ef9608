import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ulid } from "ulid";

/** An event of a session by its fields; a frame's later events have a part. */
export type ForeignEvent = Partial<Omit<Event, "ordinal" | "frame_ordinal">> & { readonly kind: string };

/** Sessions as another Tapedeck has recorded them. */
export type ForeignSession = {
  readonly session: string;
  readonly source: string;
  readonly events: Event[];
  /** Adds events, with their places. */
  add(...events: readonly ForeignEvent[]): void;
};

const observed_at = { seconds: 1_800_000_000n, nanos: 5 };

/** Begun; what it says comes then. */
export function foreignSession({ session = ulid(1_700_000_000_000), source = "globex/carol/site/skaffold" } = {}) {
  // Other sessions of the source were before it.
  const ordinals = new Map([["tapedeck", { ordinal: 40n, frame: 40n }]]);
  const events: Event[] = [];
  const place = ({ channel = "tapedeck", part = 0, ...fields }: ForeignEvent): Event => {
    const { ordinal, frame } = ordinals.get(channel) ?? { ordinal: 0n, frame: 0n };
    const next = { ordinal: ordinal + 1n, frame: part === 0 ? frame + 1n : frame };
    ordinals.set(channel, next);
    const event: Event = {
      ...Event.create(),
      session,
      source,
      channel,
      part,
      ordinal: next.ordinal,
      frame_ordinal: next.frame,
      observed_at,
      id: `${channel === "tapedeck" ? source : session}.${channel}.${next.ordinal}`,
      ...fields,
    };
    // The event has the form that a reader of a log gets.
    return Event.decode(Event.encode(event).finish());
  };
  const self: ForeignSession = {
    session,
    source,
    events,
    add(...reported) {
      for (const one of reported) events.push(place(one));
    },
  };
  const started = { labels: { branch: "main" }, redact: "on", upstream_version: "v2" };
  self.add({ kind: "session.started", detail: detailOf(started) });
  const sha256 = Buffer.alloc(32, 7);
  self.add({
    kind: "session.identified",
    detail: detailOf({ fingerprint_channel: "v1", fingerprint_sha256: sha256 }),
  });
  return self;
}

/** A frame with its bytes, and as many events as there are kinds. */
export function frameOf(channel: string, bytes: string, ...kinds: readonly string[]): ForeignEvent[] {
  const original = { type: "test.Frame", bytes: Buffer.from(bytes), size: BigInt(bytes.length) };
  const empty = { sha256: Buffer.alloc(0), head: Buffer.alloc(0) };
  return kinds.map((kind, part) => ({
    kind,
    channel,
    part,
    summary: `${bytes}, ${part}`,
    ...(part === 0 && { original: { ...original, ...empty } }),
  }));
}

export const lost: ForeignEvent = {
  kind: "upstream.lost",
  detail: { $case: "upstream", value: { address: "", reason: "cut", connection: "C", channel: "", code: 0, tap: "" } },
};
export const ended: ForeignEvent = { kind: "session.ended", detail: detailOf({ reason: "process ended" }) };

type SessionDetail = Extract<NonNullable<Event["detail"]>, { $case: "session_detail" }>;

function detailOf(fields: Partial<SessionDetail["value"]>): SessionDetail {
  const value = { labels: {}, redact: "", upstream_version: "", reason: "", fingerprint_channel: "", states: {} };
  return { $case: "session_detail", value: { ...value, fingerprint_sha256: Buffer.alloc(0), ...fields } };
}
