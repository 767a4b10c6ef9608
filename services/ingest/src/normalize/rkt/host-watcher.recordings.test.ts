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

type Told = { readonly fact: Fact; readonly observedAt: Timestamp };

/** What a watcher says of a recording's looks, asked as the tap asks; frames without their descriptions. */
function watched(name: string): { readonly seen: readonly ObservationOutcome[]; readonly told: readonly Told[] } {
  const recording = loadRecording(join(folder, name));
  const watcher = new HostWatcher({ mask, settings: {} });
  const doubts = new PodDoubts();
  const polls = readPolls(recording);
  const seen: ObservationOutcome[] = [];
  const look = (kind: InventoryKind, at: number, what: Observation["result"]) =>
    seen.push(...outcomesOf(watcher.observe(kind, { result: what }, timestampOfMs(at))));
  let asked = new Set<string>();
  for (const row of recording.rows) {
    if (row.kind !== "unary") continue;
    if (row.rpc === "InspectPod") {
      const { id } = InspectPodRequest.decode(row.request);
      if (asked.delete(id)) look("pods", row.at, { $case: "one", value: { id, ...oneOf(row) } });
      continue;
    }
    const pods = polls.pods.find(({ n }) => n === row.n);
    const images = polls.images.find(({ n }) => n === row.n);
    const error = pods?.error ?? images?.error;
    if (error !== undefined) {
      look(pods ? "pods" : "images", row.at, { $case: "failed", value: { code: error.code, message: error.details } });
    } else if (pods !== undefined) {
      const value = listAnswer("pods", pods, true);
      asked = new Set(doubts.compare(value));
      look("pods", row.at, { $case: "all", value });
    } else if (images !== undefined) {
      look("images", row.at, { $case: "all", value: listAnswer("images", images, true) });
    }
  }
  const told = seen.flatMap((one) =>
    one.what === "frame" ? one.facts.map((fact) => ({ fact, observedAt: one.observedAt })) : [],
  );
  return { seen, told: told.filter(({ fact }) => fact.kind !== "inventory.described") };
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

/** As rkt's own events would say it, with what the recording's expectation says besides. */
function asRktEvent({ fact, observedAt }: Told): Record<string, unknown> | undefined {
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
    "%s tells them, in their order",
    (name) => {
      const { told } = watched(name);
      const expected = loadRecording(join(folder, name)).expectedEvents;
      expect(told.flatMap((one) => asRktEvent(one) ?? [])).toEqual(
        expected.map(({ time_source: _, observed_at: __, previous_poll_at: ___, ...event }) => event),
      );
    },
  );

  it.each(["01-full-lifecycle", "02-fast-and-skipped-states", "03-prepare-aborted", "05-app-exit-codes"])(
    "%s has the upstream's own times where there are some, and else an interval",
    (name) => {
      const { told } = watched(name);
      const expected = loadRecording(join(folder, name)).expectedEvents;
      const facts = told.filter(({ fact }) => types[fact.kind] !== undefined);
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

/** One line for a fact: what, what it is worth, and when: = the upstream's own time, < between two looks. */
function line({ fact, observedAt }: Told): string {
  const time = (moment: Timestamp) =>
    `${moment.seconds % 100_000n}.${String(moment.nanos).padStart(9, "0").slice(0, 3)}`;
  const end = time(fact.occurredAt ?? observedAt);
  const when = fact.notBefore ? `${time(fact.notBefore)} < ${end}` : fact.occurredAt ? `= ${end}` : end;
  return `${fact.inferred ? "(" : ""}${fact.summary}${fact.inferred ? ")" : ""} ${when}`;
}

function linesOf(name: string): readonly string[] {
  return watched(name).seen.flatMap((one) =>
    one.what === "frame"
      ? one.facts.map((fact) => line({ fact, observedAt: one.observedAt }))
      : `gap: ${one.what === "gap" ? one.reason.slice(0, 30) : one.what}`,
  );
}

// By hand, from what was done to the host (its steps).
describe("a recording without expectations", () => {
  it("06: a host that does not change tells what it has, and nothing else", () => {
    expect(linesOf("06-filters")).toEqual(["the host has 7 pods 88502.530", "the host has 4 images 88502.613"]);
  });

  it("10: a start that blocks the list is told when its time is there; a pod that dies before it never started", () => {
    expect(linesOf("10-blocking-start")).toEqual([
      "the host has 1 pod 88528.297",
      "the host has 4 images 88528.575",
      "gap: the pods could not be listed: ",
      // A is prepared and started in one breath; its first answer has no start time, and is held.
      "(pod dbec7b07 prepared) = 88528.410",
      "pod dbec7b07 started = 88530.962",
      "app worker of dbec7b07 started = 88530.962",
      // Its zero is asked for again, and told as first seen.
      "app worker of dbec7b07 exited 88530.998 < 88531.968",
      "pod dbec7b07 exited 88530.998 < 88531.968",
      // B dies before the pid file; the blocked answer, running with an app that exited, is not believed.
      "(pod ed27f5ef prepared) = 88532.056",
      "pod ed27f5ef ended before it had started 88532.220 < 88533.634",
    ]);
  });

  it("11: an image removed between two looks is not missed, what the cache hides is not made up", () => {
    expect(linesOf("11-image-cache")).toEqual([
      "the host has 1 image 88535.641",
      // Twice removed and fetched: missing in one look at most. Then the cache is dropped and shows the last import.
      "image sim.example/worker:1.2.0 changed 88538.117",
      "image sim.example/stage1:0.2.0 imported = 88538.000",
      // Fetched while nobody looked, after the worker was removed for good.
      "image sim.example/tools/sidecar:latest imported = 88540.000",
      "image sim.example/worker:1.2.0 removed 88538.312 < 88538.345",
    ]);
  });

  it("14: a preparation that seems to have been given up was not", () => {
    expect(linesOf("14-false-aborted-prepare")).toEqual([
      // The first look of all is taken as it is, so a prepared pod corrects it.
      "the host has 1 pod 88590.618",
      "pod 77e8fa3b prepared = 88590.819",
      // `rkt run`: prepared, started and ended with 4 within the window.
      "(pod 34ef67ea prepared) = 88591.669",
      "(pod 34ef67ea started) = 88591.675",
      "(app batch of 34ef67ea started) = 88591.675",
      "app batch of 34ef67ea exited with 4 88591.516 < 88592.326",
      "pod 34ef67ea exited 88591.516 < 88592.326",
    ]);
  });
});
