import { describe, expect, it } from "vitest";
import { type ComparedOutcome, fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { play, pod, removedFacts, startedFacts } from "../testing/host-play.ts";
import { type Last, type PodNow, type PodStatus, podTable } from "./pod-table.ts";

/** The facts of a pod `p` with one app `a` that was known so (rows) and is answered so from now on (columns). */
const expected: Readonly<Record<Last, Readonly<Record<PodNow, readonly ComparedOutcome[]>>>> = {
  new: {
    PREPARING: [frame(fact("pod.changed", "p"))],
    PREPARED: [frame(fact("pod.prepared", "p"))],
    RUNNING: [frame(...startedFacts("p"))],
    ABORTED_PREPARE: [frame(fact("pod.prepare_aborted", "p"))],
    EXITED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 0 }),
        fact("pod.exited", "p"),
      ),
    ],
    GARBAGE: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true, exit_code: 0 }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "marked" }),
      ),
    ],
    UNDEFINED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ],
    absent: [],
  },
  PREPARING: {
    PREPARING: [],
    PREPARED: [frame(fact("pod.prepared", "p"))],
    RUNNING: [frame(...startedFacts("p"))],
    ABORTED_PREPARE: [frame(fact("pod.prepare_aborted", "p"))],
    EXITED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 0 }),
        fact("pod.exited", "p"),
      ),
    ],
    GARBAGE: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true, exit_code: 0 }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "marked" }),
      ),
    ],
    UNDEFINED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ],
    absent: [frame(fact("pod.collected", "p", { inferred: true, phase: "removed" }))],
  },
  PREPARED: {
    PREPARING: [],
    PREPARED: [],
    RUNNING: [frame(fact("pod.started", "p"), fact("app.started", "p/a"))],
    ABORTED_PREPARE: [],
    EXITED: [
      frame(
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 0 }),
        fact("pod.exited", "p"),
      ),
    ],
    GARBAGE: [
      frame(
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true, exit_code: 0 }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "marked" }),
      ),
    ],
    UNDEFINED: [
      frame(
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ],
    absent: [frame(fact("pod.collected", "p", { phase: "never-ran" }))],
  },
  RUNNING: {
    PREPARING: [],
    PREPARED: [],
    RUNNING: [],
    ABORTED_PREPARE: [],
    EXITED: [frame(fact("app.exited", "p/a", { exit_code: 0 }), fact("pod.exited", "p"))],
    GARBAGE: [
      frame(
        fact("app.exited", "p/a", { inferred: true, exit_code: 0 }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "marked" }),
      ),
    ],
    UNDEFINED: [
      frame(
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ],
    absent: [frame(...removedFacts("p"))],
  },
  ABORTED_PREPARE: {
    PREPARING: [],
    PREPARED: [frame(fact("pod.prepared", "p"))],
    RUNNING: [frame(...startedFacts("p"))],
    ABORTED_PREPARE: [],
    EXITED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 0 }),
        fact("pod.exited", "p"),
      ),
    ],
    GARBAGE: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("pod.started", "p", { inferred: true }),
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true, exit_code: 0 }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "marked" }),
      ),
    ],
    UNDEFINED: [
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ],
    absent: [frame(fact("pod.collected", "p", { phase: "never-ran" }))],
  },
  EXITED: {
    PREPARING: [],
    PREPARED: [],
    RUNNING: [],
    ABORTED_PREPARE: [],
    EXITED: [],
    GARBAGE: [frame(fact("pod.collected", "p", { phase: "marked" }))],
    UNDEFINED: [frame(fact("pod.collected", "p", { phase: "deleting" }))],
    absent: [frame(fact("pod.collected", "p", { phase: "removed" }))],
  },
  GARBAGE: {
    PREPARING: [],
    PREPARED: [],
    RUNNING: [],
    ABORTED_PREPARE: [],
    EXITED: [],
    GARBAGE: [],
    UNDEFINED: [frame(fact("pod.changed", "p"))],
    absent: [frame(fact("pod.changed", "p", { removed: true }))],
  },
  UNDEFINED: {
    PREPARING: [],
    PREPARED: [],
    RUNNING: [],
    ABORTED_PREPARE: [],
    EXITED: [],
    GARBAGE: [frame(fact("pod.changed", "p"))],
    UNDEFINED: [],
    absent: [frame(fact("pod.changed", "p", { removed: true }))],
  },
};

const cells = Object.entries(expected).flatMap(([last, row]) =>
  Object.entries(row).map(([now, outcomes]) => [last as Last, now as PodNow, outcomes] as const),
);
const other = pod("other", { state: "PREPARED" });
const listed = (state: Last | PodNow) =>
  state === "new" || state === "absent" ? [other] : [other, pod("p", { state: state as PodStatus })];

const isImpossible = (last: Last, now: PodNow) => podTable[last][now] === undefined;

describe("a pod's change of state", () => {
  it.each(cells)("%s → %s", (last, now, outcomes) => {
    const { pods } = play();
    pods(1, ...listed(last));
    // What is doubtful at first is settled by the second observation.
    const observations = [pods(10_000, ...listed(now)), pods(11_000, ...listed(now))];
    expect(observations.filter(({ length }) => length > 0)).toEqual(outcomes.length === 0 ? [] : [outcomes]);
    // A host that insists on what can't be is believed the third time.
    expect(pods(12_000, ...listed(now))).toEqual(isImpossible(last, now) ? [frame(fact("pod.contradicted", "p"))] : []);
  });

  it("knows the states that rkt has and never answers", () => {
    const { pods } = play();
    pods(1);
    expect(pods(2, pod("p", { state: "EMBRYO" }))).toEqual([frame(fact("pod.changed", "p"))]);
    expect(pods(3, pod("p", { state: "PREPARED" }))).toEqual([frame(fact("pod.prepared", "p"))]);
    expect(pods(4, pod("p", { state: "DELETING" }))).toEqual([
      frame(
        fact("app.exited", "p/a", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ]);
  });

  it("says nothing of a state that is not known, and goes on from the one before", () => {
    const { pods } = play();
    const odd = pod("p", { state: "RUNNING", more: { state: 42 as never } });
    pods(1, pod("p", { state: "PREPARED" }));
    expect(pods(2, odd, pod("q", { state: "RUNNING", more: { state: 42 as never } }))).toEqual([]);
    expect(pods(3, pod("p", { state: "RUNNING" }), pod("q", { state: "PREPARED" }))).toEqual([
      frame(fact("pod.started", "p"), fact("app.started", "p/a")),
      frame(fact("pod.prepared", "q")),
    ]);
  });
});
