import { join } from "node:path";
import { listAnswer, readPolls } from "@tapedeck/fakes/rkt/polls";
import { type InventoryKind, loadRecording, type RecordedUnary } from "@tapedeck/fakes/rkt/recording";
import { InspectPodRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { PodDoubts } from "@tapedeck/tap/rkt/list-doubts";
import { describe, expect, it } from "vitest";
import type { Fact } from "../fact.ts";
import type { ObservationOutcome } from "../inventory/observing.ts";
import { outcomesOf } from "../inventory/observing.ts";
import { HostWatcher } from "./host-watcher.ts";
import { mask } from "./mask.ts";

const folder = join(import.meta.dirname, "../../../../../packages/fakes/recordings/rkt");

type ObservedFact = { readonly fact: Fact; readonly observedAt: Timestamp };

/** What a watcher emits for a recording's observations, polled as the tap polls; frames without their descriptions. */
function watched(name: string): {
  readonly seen: readonly ObservationOutcome[];
  readonly reported: readonly ObservedFact[];
} {
  const recording = loadRecording(join(folder, name));
  const watcher = new HostWatcher({ mask, settings: {} });
  const doubts = new PodDoubts();
  const polls = readPolls(recording);
  const seen: ObservationOutcome[] = [];
  const observation = (kind: InventoryKind, at: number, what: Observation["result"]) =>
    seen.push(...outcomesOf(watcher.observe(kind, { result: what }, timestampOfMs(at))));
  let requests = new Set<string>();
  for (const row of recording.rows) {
    if (row.kind !== "unary") continue;
    if (row.rpc === "InspectPod") {
      const { id } = InspectPodRequest.decode(row.request);
      if (requests.delete(id)) observation("pods", row.at, { $case: "one", value: { id, ...oneOf(row) } });
      continue;
    }
    const pods = polls.pods.find(({ n }) => n === row.n);
    const images = polls.images.find(({ n }) => n === row.n);
    const error = pods?.error ?? images?.error;
    if (error !== undefined) {
      observation(pods ? "pods" : "images", row.at, {
        $case: "failed",
        value: { code: error.code, message: error.details },
      });
    } else if (pods !== undefined) {
      const value = listAnswer("pods", pods, true);
      requests = new Set(doubts.compare(value));
      observation("pods", row.at, { $case: "all", value });
    } else if (images !== undefined) {
      observation("images", row.at, { $case: "all", value: listAnswer("images", images, true) });
    }
  }
  const reported = seen.flatMap((one) =>
    one.what === "frame" ? one.facts.map((fact) => ({ fact, observedAt: one.observedAt })) : [],
  );
  return { seen, reported: reported.filter(({ fact }) => fact.kind !== "inventory.described") };
}

function oneOf({ response = Buffer.alloc(0), error }: RecordedUnary) {
  return { bytes: response, code: error?.code ?? 0, message: error?.details ?? "" };
}

const types: Readonly<Record<string, string>> = {
  "pod.prepared": "POD_PREPARED",
  "pod.prepare_aborted": "POD_PREPARE_ABORTED",
  "pod.started": "POD_STARTED",
  "pod.exited": "POD_EXITED",
  "pod.collected": "POD_GARBAGE_COLLECTED",
  "app.started": "APP_STARTED",
  "app.exited": "APP_EXITED",
  "image.imported": "IMAGE_IMPORTED",
  "image.removed": "IMAGE_REMOVED",
};

/** The fact in the form of rkt's own events, with the additional fields of the recording's expectations. */
function asRktEvent({ fact, observedAt }: ObservedFact): Record<string, unknown> | undefined {
  const type = types[fact.kind];
  if (type === undefined) return undefined;
  const at = fact.occurredAt ?? observedAt;
  const event = { type: `EVENT_TYPE_${type}`, time: String(at.seconds), ...(fact.inferred && { inferred: true }) };
  switch (fact.detail?.$case) {
    case "pod": {
      const { pod, name, phase } = fact.detail.value;
      return { ...event, id: pod, from: name, ...(phase && { phase }) };
    }
    case "app": {
      const { pod, app, exit_code } = fact.detail.value;
      return { ...event, id: pod, from: app, ...(exit_code !== undefined && { exit_code }) };
    }
    case "image": {
      const { image, name, version } = fact.detail.value;
      return { ...event, id: image, from: name, version };
    }
    default:
      return event;
  }
}

describe("a recording with expectations", () => {
  it.each(["01-full-lifecycle", "02-fast-and-skipped-states", "03-prepare-aborted", "05-app-exit-codes"])(
    "%s emits them, in their order",
    (name) => {
      const { reported } = watched(name);
      const expected = loadRecording(join(folder, name)).expectedEvents;
      expect(reported.flatMap((one) => asRktEvent(one) ?? [])).toEqual(
        expected.map(({ time_source: _, observed_at: __, previous_poll_at: ___, ...event }) => event),
      );
    },
  );

  it.each(["01-full-lifecycle", "02-fast-and-skipped-states", "03-prepare-aborted", "05-app-exit-codes"])(
    "%s has the upstream's own times where there are some, and else an interval",
    (name) => {
      const { reported } = watched(name);
      const expected = loadRecording(join(folder, name)).expectedEvents;
      const facts = reported.filter(({ fact }) => types[fact.kind] !== undefined);
      expect(facts).toHaveLength(expected.length);
      for (const [index, { fact, observedAt }] of facts.entries()) {
        const source = expected[index]?.time_source;
        const isEnd = fact.kind === "app.exited" || fact.kind === "pod.exited";
        expect([fact.kind, fact.occurredAt === undefined]).toEqual([fact.kind, source === "observed"]);
        expect([fact.kind, fact.notBefore !== undefined]).toEqual([fact.kind, source === "observed" || isEnd]);
        if (fact.notBefore) expect(fact.notBefore.seconds).toBeLessThanOrEqual((fact.occurredAt ?? observedAt).seconds);
      }
    },
  );
});

/** What a test compares of a fact. Times are in seconds, without the leading digits that all of a recording share. */
type TimedFact = {
  readonly summary: string;
  readonly inferred?: boolean;
  readonly notBefore?: number;
  /** The upstream's own time. */
  readonly occurredAt?: number;
  /** Given where the upstream has no time. */
  readonly observedAt?: number;
};

function timedFact({ fact, observedAt }: ObservedFact): TimedFact {
  const { summary, inferred, notBefore, occurredAt } = fact;
  return {
    summary,
    ...(inferred && { inferred }),
    ...(notBefore && { notBefore: shortTime(notBefore) }),
    ...(occurredAt ? { occurredAt: shortTime(occurredAt) } : { observedAt: shortTime(observedAt) }),
  };
}

function shortTime({ seconds, nanos }: Timestamp): number {
  return Number(seconds % 100_000n) + Math.floor(nanos / 1_000_000) / 1_000;
}

function outcomesIn(name: string) {
  return watched(name).seen.flatMap((one): readonly object[] => {
    if (one.what === "frame") return one.facts.map((fact) => timedFact({ fact, observedAt: one.observedAt }));
    return [one.what === "gap" ? { what: one.what, reason: one.reason } : one];
  });
}

// By hand, from what was done to the host (its steps).
describe("a recording without expectations", () => {
  it("06: a host that does not change describes what it has, and emits nothing else", () => {
    expect(outcomesIn("06-filters")).toEqual([
      { summary: "the host has 7 pods", observedAt: 88_502.53 },
      { summary: "the host has 4 images", observedAt: 88_502.613 },
    ]);
  });

  it("10: a start that blocks the list is emitted when its time is there; a pod that dies before it never started", () => {
    expect(outcomesIn("10-blocking-start")).toEqual([
      { summary: "the host has 1 pod", observedAt: 88_528.297 },
      { summary: "the host has 4 images", observedAt: 88_528.575 },
      { what: "gap", reason: expect.stringMatching(/^the pods could not be listed: /) },
      // A is prepared and started in one breath; its first answer has no start time, and is held.
      { summary: "pod dbec7b07 prepared", inferred: true, occurredAt: 88_528.41 },
      { summary: "pod dbec7b07 started", occurredAt: 88_530.962 },
      { summary: "app worker of dbec7b07 started", occurredAt: 88_530.962 },
      // Its zero is asked for again, and emitted as first seen.
      { summary: "app worker of dbec7b07 exited", notBefore: 88_530.998, observedAt: 88_531.968 },
      { summary: "pod dbec7b07 exited", notBefore: 88_530.998, observedAt: 88_531.968 },
      // B dies before the pid file; the blocked answer, running with an app that exited, is not believed.
      { summary: "pod ed27f5ef prepared", inferred: true, occurredAt: 88_532.056 },
      { summary: "pod ed27f5ef ended before it had started", notBefore: 88_532.22, observedAt: 88_533.634 },
    ]);
  });

  it("11: an image removed between two observations is not missed, what the cache hides is not made up", () => {
    expect(outcomesIn("11-image-cache")).toEqual([
      { summary: "the host has 1 image", observedAt: 88_535.641 },
      // Twice removed and fetched: missing in one observation at most. Then the cache is dropped and shows the last
      // import.
      { summary: "image sim.example/worker:1.2.0 changed", observedAt: 88_538.117 },
      { summary: "image sim.example/stage1:0.2.0 imported", occurredAt: 88_538.0 },
      // Fetched while nobody polled, after the worker was removed for good.
      { summary: "image sim.example/tools/sidecar:latest imported", occurredAt: 88_540.0 },
      { summary: "image sim.example/worker:1.2.0 removed", notBefore: 88_538.312, observedAt: 88_538.345 },
    ]);
  });

  it("14: a preparation that seems to have been given up was not", () => {
    expect(outcomesIn("14-false-aborted-prepare")).toEqual([
      // The first observation of all is taken as it is, so a prepared pod corrects it.
      { summary: "the host has 1 pod", observedAt: 88_590.618 },
      { summary: "pod 77e8fa3b prepared", occurredAt: 88_590.819 },
      // `rkt run`: prepared, started and ended with 4 within the window.
      { summary: "pod 34ef67ea prepared", inferred: true, occurredAt: 88_591.669 },
      { summary: "pod 34ef67ea started", inferred: true, occurredAt: 88_591.675 },
      { summary: "app batch of 34ef67ea started", inferred: true, occurredAt: 88_591.675 },
      { summary: "app batch of 34ef67ea exited with 4", notBefore: 88_591.516, observedAt: 88_592.326 },
      { summary: "pod 34ef67ea exited", notBefore: 88_591.516, observedAt: 88_592.326 },
    ]);
  });
});
