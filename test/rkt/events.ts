import type { InventoryKind, RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import { eventTypeToJSON, type Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { expect } from "vitest";
import type { RktHost } from "./host.ts";

/** A line of expected-events.jsonl. */
type Expected = {
  readonly type: string;
  readonly id: string;
  readonly from: string;
  /** Seconds since 1970. */
  readonly time: string;
  /** Which of rkt's own timestamps `time` is, or "observed": it was not observed before then. */
  readonly time_source: string;
  /** When it became certain, and the last poll before that. */
  readonly observed_at: string;
  readonly previous_poll_at: string;
  readonly exit_code?: number;
  readonly phase?: string;
  readonly version?: string;
  readonly inferred?: boolean;
};

/** An event's other fields that are also in the expectations. */
const comparedKeys = ["exit_code", "phase", "version", "inferred"] as const;

/** The kinds of facts for which rkt has an event type. */
export const rktKinds: ReadonlySet<string> = new Set([
  ...["pod.prepared", "pod.prepare_aborted", "pod.started", "pod.exited", "pod.collected"],
  ...["app.started", "app.exited", "image.imported", "image.removed"],
]);

export function kindOf({ type }: Pick<RktEvent, "type">): InventoryKind {
  return eventTypeToJSON(type).startsWith("EVENT_TYPE_IMAGE_") ? "images" : "pods";
}

export function dataOf({ data }: Pick<RktEvent, "data"> = { data: [] }): Readonly<Record<string, string>> {
  return Object.fromEntries(data.map(({ Key, value }) => [Key, value]));
}

/**
 * Formats one line: type, pod (the ends of its id), pod and app, or image, when, data. When: a timestamp of rkt's, or
 * the poll (from 1, of that kind) that showed it.
 */
export function lineOf(event: RktEvent, host: RktHost): string {
  const { type, id, from, time } = event;
  const data = dataOf(event);
  const kind = kindOf(event);
  const name = eventTypeToJSON(type).replace("EVENT_TYPE_", "");
  const pod = `${id.slice(0, 4)}-${id.slice(-4)}`;
  const subject = kind === "images" ? from : id === from ? pod : `${pod}/${from}`;
  const when = data.time_source === "observed" ? `look ${observationOf(event, host)}` : `${data.time_source} ${time}`;
  const more = [...comparedKeys, "started"].flatMap((key) => (data[key] === undefined ? [] : `${key}=${data[key]}`));
  return [name, subject, when, ...more].join(" ");
}

/** The number (from 1) of the poll of the pods, or images, that showed it first. */
function observationOf(event: RktEvent, host: RktHost): number {
  return host.pollAt(kindOf(event), Date.parse(dataOf(event).observed_at ?? ""));
}

/**
 * Expects the same events, in order: of the pods and of the images, which are polled independently. An unobserved
 * change has the time of the poll that showed it first; the number of that poll must be the same.
 */
export function expectEvents(events: readonly RktEvent[], recording: RecordedUpstream, host: RktHost): void {
  const expected = recording.expectedEvents as unknown as readonly Expected[];
  for (const kind of ["pods", "images"] as const) {
    const actual = events.filter((event) => kindOf(event) === kind);
    const ofKind = expected.filter(({ type }) => kind === (type.startsWith("EVENT_TYPE_IMAGE_") ? "images" : "pods"));
    expect(actual.map(comparable)).toEqual(ofKind.map(comparableOf));
    const observations = actual.map((event) => observationOf(event, host));
    for (const [index, want] of ofKind.entries()) {
      const event = actual[index];
      const observation = observations[index] ?? 0;
      const at = host.polls[kind][observation - 1]?.at ?? 0;
      const what = `${want.type} ${want.id} ${want.from} in look ${observation}`;
      expect(at, what).toBeGreaterThanOrEqual(earliest(want));
      expect(at, what).toBeLessThanOrEqual(Date.parse(want.observed_at));
      if (want.time_source === "observed") {
        expect(String(Math.floor(at / 1_000)), what).toBe(want.time);
        const observed = event && Date.parse(dataOf(event).observed_at ?? "");
        expect(Number(event?.time), what).toBe(Math.floor((observed ?? 0) / 1_000));
      }
    }
    // Facts of one poll came from one observation.
    const poll = ({ time_source, time, observed_at }: Expected) =>
      `${observed_at} ${time_source === "observed" ? time : ""}`;
    const first = ofKind.map((one) => ofKind.findIndex((other) => poll(other) === poll(one)));
    expect(observations).toEqual(first.map((index) => observations[index]));
  }
}

/** If the pod was removed before its exit was certain, only `time` has the moment of that observation. */
function earliest({ time_source, time, previous_poll_at }: Expected): number {
  const second = Number(time) * 1_000;
  const previous = Date.parse(previous_poll_at);
  return time_source === "observed" && previous >= second + 1_000 ? second : previous;
}

function comparable(event: RktEvent): object {
  const data = dataOf(event);
  const kept = comparedKeys.flatMap((key) => (data[key] === undefined ? [] : [[key, data[key]]]));
  return {
    type: eventTypeToJSON(event.type),
    id: event.id,
    from: event.from,
    time_source: data.time_source,
    ...(data.time_source !== "observed" && { time: String(event.time) }),
    ...Object.fromEntries(kept),
  };
}

function comparableOf(expected: Expected): object {
  const { type, id, from, time, time_source } = expected;
  const kept = comparedKeys.flatMap((key) => (expected[key] === undefined ? [] : [[key, String(expected[key])]]));
  return { type, id, from, time_source, ...(time_source !== "observed" && { time }), ...Object.fromEntries(kept) };
}
