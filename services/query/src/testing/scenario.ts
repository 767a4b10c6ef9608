import { isDeepStrictEqual } from "node:util";
import { type DeepPartial, LogEntry, State as StateV1 } from "@tapedeck/proto/skaffold/v1/skaffold";
import { State as StateV2, Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { Event, Outcome, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { fitTogether, type NewEvent } from "@tapedeck/shared/log/log";
import { type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { messageSubject } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";

export type Fields = DeepPartial<Event>;

export const shop = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

/** The time from which scenarios count milliseconds. */
export const startedAt = Date.UTC(2026, 10, 20, 9);

/** Builds events as ingest does: numbers them, and stamps each a millisecond after the last. */
export function scenario(source: SourceName = shop) {
  const ordinals = new Map<string, number>();
  const events: Event[] = [];
  let ms = 0;

  const add = (fields: Fields & { readonly kind: string }, at = ms + 1): Event => {
    const { session = "", channel = "tapedeck" } = fields;
    ms = at;
    const key = channel === "tapedeck" ? source : session;
    const ordinal = (ordinals.get(`${key}.${channel}`) ?? 0) + 1;
    ordinals.set(`${key}.${channel}`, ordinal);
    const occurredAt = timestamp(startedAt + at);
    const event = Event.fromPartial({
      id: `${key}.${channel}.${ordinal}`,
      source,
      channel,
      ordinal: BigInt(ordinal),
      frame_ordinal: BigInt(ordinal),
      occurred_at: occurredAt,
      time_source: channel === "tapedeck" ? TimeSource.TIME_SOURCE_OBSERVED : TimeSource.TIME_SOURCE_UPSTREAM,
      observed_at: occurredAt,
      summary: fields.kind,
      ...fields,
    });
    events.push(event);
    return event;
  };

  return { source, events, add, session: (session: string) => skaffoldSession(session, add) };
}

export type Scenario = ReturnType<typeof scenario>;
type Add = (fields: Fields & { readonly kind: string }, at?: number) => Event;

/** The events of a Skaffold process, by phase. `at`: milliseconds since the scenario's start. */
function skaffoldSession(session: string, add: Add) {
  let runner = 0;
  let loop = 0;
  const ref = (kind: string, subject = "") => ({ kind, subject, runner, loop });
  const v1 = (fields: Fields & { readonly kind: string }, event: V1Fields | undefined, at?: number) =>
    add({ session, channel: "v1", ...fields, ...(event && { original: v1Frame(event) }) }, at);
  const v2 = (fields: Fields & { readonly kind: string }, event: V2Fields, at?: number) =>
    add({ session, channel: "v2", ...fields, original: v2Frame(event) }, at);

  return {
    session,
    own: (kind: string, detail?: Fields["detail"], at?: number) =>
      add({ session, kind, ...(detail && { detail }) }, at),
    started: (labels: Record<string, string> = {}, at?: number) =>
      add(
        {
          session,
          kind: "session.started",
          detail: { $case: "session_detail", value: { labels, upstream_version: "v2.14.2" } },
        },
        at,
      ),
    /** `loop`: the beginning of the first loop that has them. */
    labelled: (labels: Record<string, string>, loop: Event, at?: number) =>
      add(
        {
          session,
          kind: "session.labelled",
          time_source: TimeSource.TIME_SOURCE_UPSTREAM,
          ...(loop.occurred_at && { occurred_at: loop.occurred_at }),
          detail: { $case: "session_detail", value: { labels } },
        },
        at,
      ),
    ended: (reason = "process ended", at?: number, exitCode?: number) => {
      const value = { reason, ...(exitCode !== undefined && { exit_code: exitCode }) };
      return add({ session, kind: "session.ended", detail: { $case: "session_detail", value } }, at);
    },
    lost: (reason: string, at?: number) =>
      add(
        {
          session,
          kind: "session.lost",
          time_source: TimeSource.TIME_SOURCE_INTERVAL,
          detail: { $case: "session_detail", value: { reason } },
        },
        at,
      ),
    /** Both of Skaffold's own answers about its state. */
    adopted(artifacts: Record<string, string>, at?: number) {
      const v1 = Buffer.from(StateV1.encode(StateV1.fromPartial({ buildState: { artifacts } })).finish());
      const v2 = Buffer.from(StateV2.encode(StateV2.fromPartial({ buildState: { artifacts } })).finish());
      const value = { states: { v1, v2 }, adopted: true };
      add({ session, kind: "session.described", detail: { $case: "session_detail", value } }, at);
    },
    configured(at?: number) {
      runner += 1;
      loop = 0;
      v1(
        { kind: "session.configured" },
        { event_type: { $case: "metaEvent", value: { entry: "Starting", metadata: {} } } },
        at,
      );
    },
    loopStarted(at?: number): Event {
      loop += 1;
      const detail = { $case: "loop" as const, value: { iteration: loop - 1 } };
      return v1(
        { kind: "loop.started", operation: ref("loop"), detail },
        { event_type: { $case: "devLoopEvent", value: { iteration: loop - 1, status: "In Progress" } } },
        at,
      );
    },
    loopEnded(verb: "succeeded" | "failed", at?: number, error = { code: "BUILD_UNKNOWN", message: "no" }) {
      const failed = verb === "failed";
      v1(
        {
          kind: `loop.${verb}`,
          operation: ref("loop"),
          outcome: outcomes[verb],
          ...(failed && { error }),
        },
        {
          event_type: {
            $case: "devLoopEvent",
            value: {
              iteration: loop - 1,
              status: failed ? "Failed" : "Succeeded",
              ...(failed && { err: { message: "no" } }),
            },
          },
        },
        at,
      );
    },
    build(artifact: string, verb: "started" | "succeeded" | "failed" | "canceled", at?: number, more: Fields = {}) {
      const failed = verb === "failed";
      v1(
        {
          kind: `build.${verb}`,
          subject: artifact,
          operation: ref("build", artifact),
          outcome: outcomes[verb],
          detail: { $case: "build", value: { artifact, target_platforms: "linux/amd64" } },
          ...(failed && { error: { code: "BUILD_UNKNOWN", message: `${artifact} does not build` } }),
          ...more,
        },
        { event_type: { $case: "buildEvent", value: { artifact, status: v1Texts[verb] } } },
        at,
      );
    },
    cached(artifact: string, at?: number) {
      v2(
        {
          kind: "build.cached",
          subject: artifact,
          operation: ref("build", artifact),
          outcome: Outcome.OUTCOME_SUCCEEDED,
          detail: { $case: "build", value: { artifact, cache_hit: true } },
        },
        { event_type: { $case: "buildSubtaskEvent", value: { artifact, step: "Cache", status: "Succeeded" } } },
        at,
      );
    },
    /** Test, deploy, check or sync. */
    phase(noun: "test" | "deploy" | "check" | "sync", verb: "started" | "succeeded" | "failed", at?: number) {
      v1(
        { kind: `${noun}.${verb}`, operation: ref(noun), outcome: outcomes[verb] },
        { event_type: phaseEvent(noun, verb) },
        at,
      );
    },
    resource(resource: string, verb: "pending" | "ready", at?: number) {
      v1(
        { kind: `resource.${verb}`, subject: resource, operation: ref("check") },
        {
          event_type: {
            $case: "resourceStatusCheckEvent",
            value: { resource, status: verb === "ready" ? "Succeeded" : "In Progress" },
          },
        },
        at,
      );
    },
    port(localPort: number, at?: number) {
      v1(
        { kind: "port.forwarded" },
        { event_type: { $case: "portEvent", value: { localPort, remotePort: 80, podName: "web-0" } } },
        at,
      );
    },
    debugger(container: string, verb: "attached" | "detached", at?: number) {
      v1(
        { kind: `debugger.${verb}`, subject: container },
        {
          event_type: {
            $case: "debuggingContainerEvent",
            value: {
              containerName: container,
              podName: "web-0",
              status: verb === "attached" ? "Started" : "Terminated",
              debugPorts: { jdwp: 5005 },
            },
          },
        },
        at,
      );
    },
    /** v2 reports it: for the loop that v1 has begun last, or for an earlier one. */
    render(verb: "started" | "succeeded" | "failed", at?: number, own = ref("render")) {
      const status = verb === "started" ? "InProgress" : v2Text(verb);
      v2(
        { kind: `render.${verb}`, operation: { ...own, kind: "render" }, outcome: outcomes[verb] },
        { event_type: { $case: "taskEvent", value: { id: `Render-${own.loop}`, task: "Render", status } } },
        at,
      );
    },
    /** v2's own report of the end, which is a mirror of v1's. */
    loopEndedOnV2(verb: "succeeded" | "failed", at?: number, own = ref("loop")) {
      const [id, status] = [`DevLoop-${own.loop}`, v2Text(verb)];
      const value = { what: "taskEvent", status, task_id: id };
      v2(
        { kind: "mirror.received", operation: { ...own, kind: "loop" }, detail: { $case: "mirror", value } },
        { event_type: { $case: "taskEvent", value: { id, task: "DevLoop", status, iteration: own.loop } } },
        at,
      );
    },
    mirrored(artifact: string, status: string, at?: number) {
      v2(
        { kind: "mirror.received", detail: { $case: "mirror", value: { what: "buildSubtaskEvent", status } } },
        { event_type: { $case: "buildSubtaskEvent", value: { artifact, step: "Build", status } } },
        at,
      );
    },
    text(text: string, at?: number) {
      v2(
        { kind: "log.written", operation: ref(""), detail: { $case: "text", value: { text } } },
        { event_type: { $case: "skaffoldLogEvent", value: { message: text } } },
        at,
      );
    },
  };
}

export type SkaffoldSession = ReturnType<typeof skaffoldSession>;
type V1Fields = NonNullable<DeepPartial<LogEntry>["event"]>;
type V2Fields = DeepPartial<V2Event>;

const outcomes = {
  started: Outcome.OUTCOME_NONE,
  succeeded: Outcome.OUTCOME_SUCCEEDED,
  failed: Outcome.OUTCOME_FAILED,
  canceled: Outcome.OUTCOME_CANCELED,
} as const;

const v1Texts = { started: "In Progress", succeeded: "Complete", failed: "Failed", canceled: "Canceled" } as const;

const v2Text = (verb: "succeeded" | "failed") => (verb === "failed" ? "Failed" : "Succeeded");

function phaseEvent(
  noun: "test" | "deploy" | "check" | "sync",
  verb: "started" | "succeeded" | "failed",
): V1Fields["event_type"] {
  switch (noun) {
    case "test":
      return { $case: "TestEvent", value: { status: v1Texts[verb] } };
    case "deploy":
      return { $case: "deployEvent", value: { status: v1Texts[verb] } };
    case "check":
      return {
        $case: "statusCheckEvent",
        value: { status: verb === "started" ? "Started" : v1Texts[verb].replace("Complete", "Succeeded") },
      };
    case "sync":
      return { $case: "fileSyncEvent", value: { status: v1Texts[verb].replace("Complete", "Succeeded") } };
  }
}

function v1Frame(event: V1Fields) {
  const bytes = Buffer.from(LogEntry.encode(LogEntry.fromPartial({ event })).finish());
  return { type: "proto.LogEntry", bytes, size: BigInt(bytes.length) };
}

function v2Frame(event: V2Fields) {
  const bytes = Buffer.from(V2Event.encode(V2Event.fromPartial(event)).finish());
  return { type: "proto.v2.Event", bytes, size: BigInt(bytes.length) };
}

export function timestamp(ms: number, nanos = 0) {
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1_000) * 1_000_000) + nanos };
}

/** Appends events to the log in their order, each in a message of its own. Resolves with the sequence of each. */
export async function write(log: Pick<Log, "writer">, events: readonly Event[]): Promise<number[]> {
  return (await writeTogether(log, events, 1)).map(sequenceOf);
}

/**
 * Appends events to the log in their order, up to so many in a message, as far as they fit together. Resolves with where
 * each stands.
 */
export async function writeTogether(
  log: Pick<Log, "writer">,
  events: readonly Event[],
  perMessage: number,
): Promise<Offset[]> {
  const offsets: Offset[] = [];
  const lastSeqs = new Map<SourceName, number>();
  for (const batch of messagesOf(events, perMessage)) {
    const source = batch[0]?.event.source as SourceName;
    const expected = lastSeqs.get(source) ?? (await lastSeq(log, source));
    const written = batch.map(({ written }) => written);
    const seq = await publish(log, source, written, expected);
    lastSeqs.set(source, seq);
    offsets.push(...batch.map((_, index) => offsetOf(seq, index)));
  }
  return offsets;
}

/** The source's last message, 0 for none. A question that was sent while the log restarted is not answered. */
async function lastSeq(log: Pick<Log, "writer">, source: SourceName): Promise<number> {
  const ask = async () => ({ seq: (await log.writer.lastOf(source))?.seq ?? 0 });
  return (await until(ask, { message: "the log to answer" })).seq;
}

/** Appends as a writer does: after a missing answer (the machine is busy) it asks the log for its end. */
async function publish(
  log: Pick<Log, "writer">,
  source: SourceName,
  events: readonly NewEvent[],
  expected: number,
): Promise<number> {
  for (;;) {
    const published = await log.writer.publish(source, "w1", events, expected);
    if (published.outcome === "acknowledged") return published.seq;
    if (published.outcome === "refused") throw new Error("the log refuses it", { cause: published.cause });
    const last = await log.writer.lastOf(source).catch(() => undefined);
    const isThere = isDeepStrictEqual(last?.mark.cursor, events.at(-1)?.cursor);
    if (last !== undefined && last.seq > expected && isThere) return last.seq;
    if ((last?.seq ?? expected) !== expected) throw new Error(`somebody else writes ${source}`);
  }
}

type Written = { readonly event: Event; readonly written: NewEvent };

/** Cuts events into messages. */
function messagesOf(events: readonly Event[], perMessage: number): Written[][] {
  const messages: Written[][] = [];
  for (const event of events) {
    const written = newEventOf(event);
    const message = messages.at(-1);
    const [first] = message ?? [];
    const fits = first !== undefined && fitTogether(first.written, written);
    if (message !== undefined && message.length < perMessage && fits) message.push({ event, written });
    else messages.push([{ event, written }]);
  }
  return messages;
}

function newEventOf(event: Event): NewEvent {
  const { source, channel, kind, session } = event;
  const ordinals = { [channel]: Number(event.ordinal) };
  return {
    subject: messageSubject(source as SourceName, channel, kind, kind.endsWith(".written") ? "text" : "facts"),
    session,
    event: encodeEvent(event),
    cursor: { session, ordinals, frames: ordinals },
  };
}
