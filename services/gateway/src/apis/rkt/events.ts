import { EventType, type KeyValue, Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { type AppDetail, type ImageDetail, type PodDetail, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { Event } from "@tapedeck/shared/events/codec";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import { ownValue } from "@tapedeck/shared/own-value";

/** The facts that rkt's API has a type for, and the rkt timestamp that their time may come from. */
const kinds: Readonly<Record<string, { readonly type: EventType; readonly stamp: string }>> = {
  "pod.prepared": { type: EventType.EVENT_TYPE_POD_PREPARED, stamp: "created_at" },
  "pod.prepare_aborted": { type: EventType.EVENT_TYPE_POD_PREPARE_ABORTED, stamp: "observed" },
  "pod.started": { type: EventType.EVENT_TYPE_POD_STARTED, stamp: "started_at" },
  "pod.exited": { type: EventType.EVENT_TYPE_POD_EXITED, stamp: "gc_marked_at" },
  "pod.collected": { type: EventType.EVENT_TYPE_POD_GARBAGE_COLLECTED, stamp: "gc_marked_at" },
  "app.started": { type: EventType.EVENT_TYPE_APP_STARTED, stamp: "started_at" },
  "app.exited": { type: EventType.EVENT_TYPE_APP_EXITED, stamp: "gc_marked_at" },
  "image.imported": { type: EventType.EVENT_TYPE_IMAGE_IMPORTED, stamp: "import_timestamp" },
  "image.removed": { type: EventType.EVENT_TYPE_IMAGE_REMOVED, stamp: "observed" },
};

/**
 * A recorded fact as an event of rkt's API; undefined for a fact that is none of its nine types. `id`: the pod's, also for
 * apps, or the image's. `from`: the pod's name (annotation rkt.kubernetes.io/name, else its id), the app's, the image's. `time`:
 * whole seconds, rounded down. `data`: always in this order, without unknown values:
 *
 * | key | of | value |
 * |---|---|---|
 * | apps | POD_PREPARED | names, with commas |
 * | pid, cgroup | POD_STARTED | |
 * | networks | POD_STARTED | name=address, with commas |
 * | image_id, image_name, image_version | APP_STARTED | |
 * | exit_code | APP_EXITED | omitted when it is certainly unknown |
 * | exit_code_known | APP_EXITED | false for 0 too: rkt reports 0 also without a code |
 * | phase | POD_GARBAGE_COLLECTED | marked, deleting, removed, never-ran |
 * | started | POD_EXITED | false: it ended before it had started |
 * | removed | APP_EXITED | true: removed from a pod that keeps running |
 * | version | IMAGE_… | |
 * | size | IMAGE_IMPORTED | bytes |
 * | inferred | all | true: concluded from a later state; its own was never observed |
 * | not_before | all | RFC 3339; not observed directly: it happened between this and `time` |
 * | time_source | all | created_at, started_at, gc_marked_at, import_timestamp (rkt's own), observed |
 * | observed_at | all | RFC 3339: when Tapedeck observed it |
 */
export function rktEvent(event: Event): RktEvent | undefined {
  const known = ownValue(kinds, event.kind);
  const what = event.detail;
  if (known === undefined || what === undefined) return undefined;
  const { type, stamp } = known;
  const { seconds } = event.occurred_at ?? event.observed_at ?? { seconds: 0n };
  const build = (id: string, from: string, own: readonly Entry[]) =>
    RktEvent.create({ type, id, from, time: seconds, data: pairs([...own, ...common(event, stamp)]) });
  switch (what.$case) {
    case "pod":
      return build(what.value.pod, what.value.name, podData(type, what.value));
    case "app":
      return build(what.value.pod, what.value.app, appData(type, what.value));
    case "image":
      return build(what.value.image, what.value.name, imageData(type, what.value));
    default:
      return undefined;
  }
}

/** A value that is undefined or empty is left out. */
type Entry = readonly [key: string, value: string | undefined];

function pairs(entries: readonly Entry[]): KeyValue[] {
  return entries.flatMap(([Key, value]) => (value === undefined || value === "" ? [] : [{ Key, value }]));
}

function podData(type: EventType, pod: PodDetail): Entry[] {
  switch (type) {
    case EventType.EVENT_TYPE_POD_PREPARED:
      return [["apps", pod.apps.join(",")]];
    case EventType.EVENT_TYPE_POD_STARTED:
      return [
        ["pid", pod.pid > 0 ? String(pod.pid) : undefined],
        ["cgroup", pod.cgroup],
        ["networks", pod.networks.join(",")],
      ];
    case EventType.EVENT_TYPE_POD_EXITED:
      return [["started", pod.started === false ? "false" : undefined]];
    case EventType.EVENT_TYPE_POD_GARBAGE_COLLECTED:
      return [["phase", pod.phase]];
    default:
      return [];
  }
}

function appData(type: EventType, app: AppDetail): Entry[] {
  if (type === EventType.EVENT_TYPE_APP_STARTED) {
    return [
      ["image_id", app.image_id],
      ["image_name", app.image_name],
      ["image_version", app.image_version],
    ];
  }
  return [
    ["exit_code", app.exit_code === undefined ? undefined : String(app.exit_code)],
    ["exit_code_known", String(app.exit_code_known)],
    ["removed", app.removed ? "true" : undefined],
  ];
}

function imageData(type: EventType, image: ImageDetail): Entry[] {
  const isImport = type === EventType.EVENT_TYPE_IMAGE_IMPORTED;
  return [
    ["version", image.version],
    ["size", isImport && image.size > 0n ? String(image.size) : undefined],
  ];
}

function common(event: Event, stamp: string): Entry[] {
  const { occurred_at, observed_at, not_before } = event;
  return [
    ["inferred", event.inferred ? "true" : undefined],
    ["not_before", not_before && timeToJson(not_before)],
    ["time_source", isStamped(event) ? stamp : "observed"],
    ["observed_at", observed_at && timeToJson(observed_at)],
  ];

  /** The time of an interval is when it was observed, unless an rkt timestamp shows that the fact was earlier. */
  function isStamped({ time_source }: Event): boolean {
    if (time_source !== TimeSource.TIME_SOURCE_INTERVAL) return time_source === TimeSource.TIME_SOURCE_UPSTREAM;
    return occurred_at?.seconds !== observed_at?.seconds || occurred_at?.nanos !== observed_at?.nanos;
  }
}
