import { normalizers } from "@tapedeck/ingest/normalize/normalizers";
import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { type Fields, scenario, startedAt, timestamp } from "@tapedeck/query/testing/scenario";
import { ulid } from "@tapedeck/query/testing/vagrant-scenario";
import { sourceName } from "@tapedeck/shared/source";
import type { UpstreamName } from "@tapedeck/shared/upstreams";

// The record of a source, written as ingest writes it: the upstream's own messages go through ingest's normalizers, so
// a case contains only what the upstream emits.

type Timestamp = ReturnType<typeof timestamp>;
type Fact = ReturnType<ReturnType<(typeof normalizers.skaffold.channels)[number]["reader"]>["read"]>[number];

export type Recording = {
  /** In full. */
  readonly source: string;
  readonly events: readonly Event[];
  /** Time passes. */
  pass(ms: number): void;
  /** The current time. */
  now(): Timestamp;
  begin(labels?: Readonly<Record<string, string>>, version?: string): RecordedSession;
};

export type RecordedSession = {
  readonly session: string;
  /** A message of the upstream's own stream. */
  frame(channel: string, bytes: Uint8Array): void;
  /** The result of a poll of the upstream. */
  observe(channel: string, result: NonNullable<Observation["result"]>): void;
  /** The upstream's own description of itself. */
  described(state: string, bytes: Uint8Array): void;
  /** git's labels at the start of a loop, which was then. */
  labelled(labels: Readonly<Record<string, string>>, since: Timestamp): void;
  end(reason?: string): void;
};

let sessions = 0;

export function recording(developer: string, project: string, upstream: UpstreamName): Recording {
  const source = sourceName({ workspace: "acme", developer, project, upstream });
  const { add, events } = scenario(source);
  let clock = 0;
  const at = (ms = clock) => timestamp(startedAt + ms);
  const report = (fields: Fields & { readonly kind: string }) => {
    clock += 1;
    add(fields, clock);
  };
  const pass = (ms: number) => {
    clock += ms;
  };
  const begin = (labels: Readonly<Record<string, string>> = {}, version = ""): RecordedSession => {
    sessions += 1;
    const session = ulid(sessions);
    const own = (kind: string, value: object, more: Fields = {}) =>
      report({ session, kind, detail: { $case: "session_detail", value }, ...more });
    own("session.started", { labels: { ...labels }, redact: "on", upstream_version: version });
    return {
      session,
      ...facts(upstream, session, report, () => at()),
      described: (api, bytes) => own("session.described", { states: { [api]: Buffer.from(bytes) } }, { subject: api }),
      labelled: (changed, occurred_at) =>
        own(
          "session.labelled",
          { labels: { ...changed } },
          { time_source: TimeSource.TIME_SOURCE_UPSTREAM, occurred_at },
        ),
      end: (reason = "process ended") => own("session.ended", { reason }),
    };
  };
  return { source, events, pass, now: () => at(), begin };
}

type Tell = (fields: Fields & { readonly kind: string }) => void;

/** The facts that ingest's normalizer finds in an upstream's messages. */
function facts(upstream: UpstreamName, session: string, report: Tell, now: () => Timestamp) {
  const { channels, observing } = normalizers[upstream];
  const readers = new Map(channels.map(({ name, messageType, reader }) => [name, { messageType, ...reader() }]));
  const mask = (_: string, bytes: Uint8Array) => ({ bytes, redacted: 0 });
  const watcher = observing?.watch({ mask, settings: {} });
  const write = (channel: string, found: readonly Fact[], frame: Fields["original"]) => {
    for (const [part, { occurredAt, notBefore, ...fact }] of found.entries()) {
      const time_source = notBefore
        ? TimeSource.TIME_SOURCE_INTERVAL
        : occurredAt
          ? TimeSource.TIME_SOURCE_UPSTREAM
          : TimeSource.TIME_SOURCE_OBSERVED;
      const times = { ...(occurredAt && { occurred_at: occurredAt }), ...(notBefore && { not_before: notBefore }) };
      report({
        session,
        channel,
        part,
        ...fact,
        time_source,
        ...times,
        ...(part === 0 && frame && { original: frame }),
      });
    }
  };
  return {
    frame(channel: string, bytes: Uint8Array) {
      const reader = readers.get(channel);
      if (reader === undefined) throw new Error(`${upstream} has no channel ${channel}`);
      write(channel, reader.read(bytes), original(reader.messageType, bytes));
    },
    observe(channel: string, result: NonNullable<Observation["result"]>) {
      for (const outcome of watcher?.observe(channel, { result }, now()) ?? []) {
        if (outcome.what !== "frame") continue;
        write(channel, outcome.facts, outcome.original && original(outcome.original.type, outcome.original.bytes));
      }
    },
  };
}

function original(type: string, bytes: Uint8Array): Fields["original"] {
  return { type, bytes: Buffer.from(bytes), size: BigInt(bytes.length) };
}
