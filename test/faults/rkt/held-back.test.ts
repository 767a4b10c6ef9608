import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { readPolls } from "@tapedeck/fakes/rkt/polls";
import { PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event, PodDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import { Observations } from "../../harness/rkt-observations.ts";
import { knowableFacts } from "./held-back.ts";
import { type RecordedFact, recordedFacts } from "./recorded-facts.ts";

const preparing = { ...runningPod(0), state: PodState.POD_STATE_PREPARING };
const aborted = { ...preparing, state: PodState.POD_STATE_ABORTED_PREPARE };
/** Row 1: being prepared; 2 and 3: given up; 4: gone. */
const { pods } = readPolls(madeUpRecording({ pods: [[preparing], [aborted], [aborted], []] }));

const prepared = fact("pod.changed", "is being prepared", { state: "PREPARING" });
const givenUp = fact("pod.prepare_aborted", "failed to be prepared", { state: "ABORTED_PREPARE" });
const undisturbed = [
  prepared,
  givenUp,
  fact("pod.collected", "was removed and never ran", {
    state: "ABORTED_PREPARE",
    last_state: "ABORTED_PREPARE",
    phase: "never-ran",
  }),
];
const onlyRemoved = [
  prepared,
  fact("pod.collected", "was removed", { state: "PREPARING", last_state: "PREPARING", phase: "removed" }, true),
];

function fact(kind: string, what: string, detail: Partial<PodDetail>, inferred = false): RecordedFact {
  const { id } = preparing;
  const value = PodDetail.fromPartial({ pod: id, ...detail });
  const summary = `pod ${id} ${what}`;
  const event = Event.fromPartial({
    channel: "pods",
    subject: id,
    kind,
    summary,
    inferred,
    detail: { $case: "pod", value },
  });
  const events = [{ seq: 1, event }] as unknown as Parameters<typeof recordedFacts>[0]["events"];
  const [one] = recordedFacts({ events, host: { rowAt: () => 0 } }, "pods");
  if (one === undefined) throw new Error("no fact");
  return one;
}

/** The rows read by each connection in turn, and how many of them were recorded when it was killed. */
type Life = { readonly rows: readonly number[]; readonly recorded: number };

function knowable(lives: readonly Life[], wild: readonly RecordedFact[] = onlyRemoved) {
  const observations = new Observations();
  let answers = 0;
  for (const [index, { rows, recorded }] of lives.entries()) {
    // A row counts as read when the next call comes.
    for (const [before, reported] of [0, ...rows].entries()) {
      observations.answered(`connection ${index}`, { reported, answers: answers++ });
      if (before === recorded) observations.takenIn()();
    }
  }
  return knowableFacts(undisturbed, wild, { name: "host", pods, observations }).map(({ lasting }) => lasting);
}

const lasting = (facts: readonly RecordedFact[]) => facts.map((one) => one.lasting);

it("a given up preparation is unknown if no connection recorded a second answer", () => {
  const lives = [
    { rows: [1, 2], recorded: 1 },
    { rows: [2, 3], recorded: 1 },
    { rows: [3, 4], recorded: 1 },
    { rows: [4, 4], recorded: 2 },
  ];
  expect(knowable(lives)).toEqual(lasting(onlyRemoved));
});

it.each<readonly [what: string, Life]>([
  ["of the next row", { rows: [2, 3, 4], recorded: 2 }],
  ["of the same row", { rows: [3, 3, 4], recorded: 2 }],
  ["without the pod", { rows: [3, 4], recorded: 2 }],
])("a given up preparation must be recorded if a connection recorded a second answer: %s", (_, life) => {
  expect(knowable([{ rows: [1, 2], recorded: 1 }, life])).toEqual(lasting(undisturbed));
});

it("a given up preparation that is recorded must be recorded as undisturbed", () => {
  expect(knowable([{ rows: [1, 2], recorded: 1 }], undisturbed)).toEqual(lasting(undisturbed));
});

it("a call that the client gave up is no answer", () => {
  const observations = new Observations();
  observations.answered("connection", { reported: 0, answers: 0 });
  observations.answered("connection", { reported: 2, answers: 1 });
  observations.answered("connection", { reported: 2, answers: 1 });
  observations.takenIn()();
  expect(observations.recordedPairs).toEqual([]);
});
