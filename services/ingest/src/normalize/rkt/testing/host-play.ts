import { AppState, Image, Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { listOf } from "@tapedeck/shared/rkt/entries";
import { msOfTimestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect } from "vitest";
import type { Fact } from "../../fact.ts";
import type { ObservationOutcome, Observed, Watcher } from "../../inventory/observing.ts";
import { outcomesOf } from "../../inventory/observing.ts";
import {
  type ComparedFact,
  type ComparedOutcome,
  compared,
  type FactFields,
  fact,
} from "../../inventory/testing/outcome-fields.ts";
import type { InventoryKind } from "../extinction.ts";
import { HostWatcher } from "../host-watcher.ts";
import type { PodStatus } from "../pods/pod-table.ts";

// Hosts and observations of them for tests, and the fields of a watcher's facts that tests compare.

export type PodFields = {
  readonly state: PodStatus | "EMBRYO" | "DELETING";
  /** Exit codes by app. */
  readonly codes?: Readonly<Record<string, number>>;
  /** Ms since 1970. */
  readonly created?: number;
  readonly started?: number;
  readonly marked?: number;
  readonly pid?: number;
  readonly appState?: AppState;
  readonly name?: string;
  readonly more?: Partial<Pod>;
};

/** A pod as rkt answers it in a state: with what such a pod has, unless something else is said. */
export function pod(id: string, observation: PodFields): Pod {
  const { state, codes = { a: 0 }, name, more } = observation;
  const hasRun = state === "RUNNING" || state === "EXITED" || state === "GARBAGE";
  const {
    created = hasRun || state === "PREPARED" ? 1_000 : 0,
    started = hasRun ? 2_000 : 0,
    marked = state === "GARBAGE" ? 3_000 : 0,
    pid = hasRun ? 77 : -1,
    appState = appStates[state] ?? AppState.APP_STATE_UNDEFINED,
  } = observation;
  return Pod.fromPartial({
    id,
    pid,
    state: PodState[`POD_STATE_${state}`],
    apps: Object.entries(codes).map(([app, exit_code]) => ({
      name: app,
      image: { id: "sha512-1", name: "sim.example/worker", version: "1.2.0" },
      state: appState,
      exit_code,
    })),
    annotations: name === undefined ? [] : [{ Key: "rkt.kubernetes.io/name", value: name }],
    cgroup: state === "RUNNING" ? "/machine.slice/x" : "",
    networks: state === "RUNNING" || state === "EXITED" ? [{ name: "default", ipv4: "172.16.28.2", ipv6: "" }] : [],
    created_at: ns(created),
    started_at: ns(started),
    gc_marked_at: ns(marked),
    ...more,
  });
}

const appStates: Partial<Record<PodFields["state"], AppState>> = {
  RUNNING: AppState.APP_STATE_RUNNING,
  EXITED: AppState.APP_STATE_EXITED,
  GARBAGE: AppState.APP_STATE_EXITED,
};

function ns(ms: number): bigint {
  return BigInt(ms) * 1_000_000n;
}

/** `imported`: seconds since 1970. */
export function image(
  id: string,
  { imported = 0, size = 5, name = "sim.example/worker", version = "1.2.0" } = {},
): Image {
  return Image.fromPartial({ id, name, version, import_timestamp: BigInt(imported), size: BigInt(size) });
}

export type Play = {
  readonly watcher: Watcher<Observed>;
  /** Everything that was seen, by channel and in order. */
  readonly record: { readonly channel: InventoryKind; readonly seen: ObservationOutcome }[];
  readonly observation: (channel: InventoryKind, at: number, what: Observation["result"]) => readonly ComparedOutcome[];
  readonly pods: (at: number, ...listed: readonly Pod[]) => readonly ComparedOutcome[];
  readonly images: (at: number, ...listed: readonly Image[]) => readonly ComparedOutcome[];
  readonly same: (channel: InventoryKind, at: number) => readonly ComparedOutcome[];
  readonly failed: (channel: InventoryKind, at: number, message?: string) => readonly ComparedOutcome[];
  readonly inspected: (at: number, pod: Pod) => readonly ComparedOutcome[];
  readonly refused: (
    channel: InventoryKind,
    at: number,
    id: string,
    message: string,
    code?: number,
  ) => readonly ComparedOutcome[];
};

/** Plays observations (at ms since 1970) to a watcher; each call gives the outcomes, as tests compare them. */
export function play({
  settings = {},
  describeAfter,
  watcher = new HostWatcher(
    { mask: (_, bytes) => ({ bytes, redacted: 0 }), settings },
    { ...(describeAfter !== undefined && { describeAfter }) },
  ),
}: {
  settings?: Readonly<Record<string, string>>;
  describeAfter?: number;
  watcher?: Watcher<Observed>;
} = {}): Play {
  const record: Play["record"] = [];
  const observation: Play["observation"] = (channel, at, what) => {
    const seen = outcomesOf(watcher.observe(channel, { result: what }, timestampOfMs(at)));
    record.push(...seen.map((one) => ({ channel, seen: one })));
    return compared(seen, comparedFields);
  };
  const one = (
    channel: InventoryKind,
    at: number,
    id: string,
    answer: { bytes?: Uint8Array; code?: number; message?: string },
  ) => {
    const { bytes = Buffer.alloc(0), code = 0, message = "" } = answer;
    return observation(channel, at, { $case: "one", value: { id, bytes: Buffer.from(bytes), code, message } });
  };
  return {
    watcher,
    record,
    observation,
    pods: (at, ...listed) => observation("pods", at, { $case: "all", value: listOfPods(listed) }),
    images: (at, ...listed) => observation("images", at, { $case: "all", value: listOfImages(listed) }),
    same: (channel, at) => observation(channel, at, { $case: "same", value: true }),
    failed: (channel, at, message = "no") => observation(channel, at, { $case: "failed", value: { code: 2, message } }),
    inspected: (at, found) => one("pods", at, found.id, { bytes: listOfPods([found]) }),
    refused: (channel, at, id, message, code = 2) => one(channel, at, id, { code, message }),
  };
}

export function listOfPods(pods: readonly Pod[]): Buffer {
  return Buffer.from(listOf(pods.map((one) => Pod.encode(one).finish())));
}

export function listOfImages(images: readonly Image[]): Buffer {
  return Buffer.from(listOf(images.map((one) => Image.encode(one).finish())));
}

function comparedFields({ kind, subject, detail }: Fact): FactFields {
  expect(subject).toBe(subjectOf(detail));
  if (detail?.$case === "app") return kind === "app.exited" ? { exit_code: detail.value.exit_code } : {};
  if (detail?.$case !== "pod") return {};
  const { phase, removed, started } = detail.value;
  return { ...(phase !== "" && { phase }), ...(removed && { removed }), ...(started === false && { started }) };
}

function subjectOf(detail: Fact["detail"]): string | undefined {
  switch (detail?.$case) {
    case "pod":
      return detail.value.pod;
    case "app":
      return `${detail.value.pod}/${detail.value.app}`;
    case "image":
      return detail.value.image;
    default:
      return undefined;
  }
}

/** The facts about a pod with one app `a` that is seen running for the first time. */
export function startedFacts(pod: string): readonly ComparedFact[] {
  return [fact("pod.prepared", pod, { inferred: true }), fact("pod.started", pod), fact("app.started", `${pod}/a`)];
}

/** The facts about a pod with one app `a` that ran when it was listed last, and is not listed any more. */
export function removedFacts(pod: string): readonly ComparedFact[] {
  return [
    fact("app.exited", `${pod}/a`, { inferred: true }),
    fact("pod.exited", pod, { inferred: true }),
    fact("pod.collected", pod, { phase: "removed" }),
  ];
}

/** Frames' facts with their times, in ms: `after` where nobody saw it. */
export function timesOf({ record }: Play, kind: Fact["kind"]) {
  return record.flatMap(({ seen }) => {
    if (seen.what !== "frame") return [];
    const facts = seen.facts.filter((fact) => fact.kind === kind);
    return facts.map(({ occurredAt, notBefore }) => ({
      observed: msOfTimestamp(seen.observedAt),
      ...(occurredAt && { occurred: msOfTimestamp(occurredAt) }),
      ...(notBefore && { after: msOfTimestamp(notBefore) }),
    }));
  });
}

/** The events that the log would give back. */
export function eventsOf(record: Play["record"]): Event[] {
  const ordinals = { pods: 0n, images: 0n };
  return record.flatMap(({ channel, seen }) => {
    if (seen.what !== "frame") return [];
    return seen.facts.map(({ kind, subject = "", detail }, part) => {
      const original = part === 0 ? seen.original : undefined;
      ordinals[channel] += 1n;
      return Event.decode(
        Event.encode(
          Event.fromPartial({
            channel,
            ordinal: ordinals[channel],
            kind,
            subject,
            part,
            observed_at: seen.observedAt,
            redacted: original?.redacted ?? 0,
            ...(seen.isSingleItem && { single_item: true }),
            ...(original && { original: { type: original.type, bytes: Buffer.from(original.bytes) } }),
            ...(detail && { detail: detail as NonNullable<Event["detail"]> }),
          }),
        ).finish(),
      );
    });
  });
}
