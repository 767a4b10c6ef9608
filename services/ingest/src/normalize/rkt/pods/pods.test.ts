import { AppState, Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { beforeEach, describe, expect, it } from "vitest";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { type ComparedOutcome, fact, frame, gap } from "../../inventory/testing/outcome-fields.ts";
import {
  eventsOf,
  type Play,
  type PodFields,
  play,
  pod,
  removedFacts,
  startedFacts,
  timesOf,
} from "../testing/host-play.ts";

const other = pod("other", { state: "PREPARED" });
let harness: Play;

/** An observation of a host with another pod and `p` in this state (undefined: without it). */
function sees(at: number, observation?: PodFields): readonly ComparedOutcome[] {
  return harness.pods(at, other, ...(observation === undefined ? [] : [pod("p", observation)]));
}

function inspected(at: number, observation: PodFields): readonly ComparedOutcome[] {
  return harness.inspected(at, pod("p", observation));
}

beforeEach(() => {
  harness = play();
  harness.pods(1_000, other);
});

describe("a preparation that was given up", () => {
  const given: PodFields = { state: "ABORTED_PREPARE" };
  const falsely: PodFields = { state: "ABORTED_PREPARE", codes: { a: -1 } };

  it("is believed the second time, and emitted as seen first", () => {
    expect([sees(2_000, given), sees(3_000, given)]).toEqual([[], [frame(fact("pod.prepare_aborted", "p"))]]);
    expect(timesOf(harness, "pod.prepare_aborted")).toEqual([{ observed: 2_000, after: 1_000 }]);
  });

  it("is believed when it is asked for by name", () => {
    expect([sees(2_000, given), inspected(2_001, given), sees(3_000, given)]).toEqual([
      [],
      [frame(fact("pod.prepare_aborted", "p"))],
      [],
    ]);
  });

  it("was not, when the pod goes on", () => {
    expect([sees(2_000, falsely), sees(3_000, { state: "PREPARED" })]).toEqual([
      [],
      [frame(fact("pod.prepared", "p"))],
    ]);
    expect([sees(4_000, { state: "PREPARED" }), sees(5_000)]).toEqual([[], []]);
  });

  it("is believed of a pod that is gone by then, unless it bears the marks of a false one", () => {
    expect([sees(2_000, given), sees(3_000), sees(4_000)]).toEqual([
      [],
      [frame(fact("pod.prepare_aborted", "p"))],
      [frame(fact("pod.collected", "p", { phase: "never-ran" }))],
    ]);
    const q = pod("q", falsely);
    expect(
      [harness.pods(5_000, q), harness.pods(6_000), harness.pods(7_000, q), harness.pods(8_000, q)].slice(1),
    ).toEqual([
      [frame(fact("pod.collected", "other", { phase: "never-ran" }))],
      [],
      [frame(fact("pod.prepare_aborted", "q"))],
    ]);
  });
});

describe("a start", () => {
  const starting: PodFields = { state: "RUNNING", started: 0, pid: -1 };

  it("is emitted with its time when the next observation has it", () => {
    expect([sees(2_000, starting), sees(3_000, { state: "RUNNING", started: 1_900 })]).toEqual([
      [],
      [frame(...startedFacts("p"))],
    ]);
    expect(timesOf(harness, "pod.started")).toEqual([{ observed: 3_000, occurred: 1_900 }]);
  });

  it("is emitted as seen first when there is still no time, and the late time is a change", () => {
    expect([sees(2_000, starting), sees(3_000, starting)]).toEqual([[], [frame(...startedFacts("p"))]]);
    expect(timesOf(harness, "pod.started")).toEqual([{ observed: 2_000, after: 1_000 }]);
    expect(timesOf(harness, "app.started")).toEqual([{ observed: 2_000, after: 1_000 }]);
    expect(sees(4_000, { state: "RUNNING" })).toEqual([frame(fact("pod.changed", "p"))]);
  });

  it("is known of a pod that was seen running, also when its time never comes", () => {
    for (const at of [2_000, 3_000]) sees(at, starting);
    expect(sees(4_000, { state: "EXITED", started: 0, codes: { a: 3 } })).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 3 }), fact("pod.exited", "p")),
    ]);
  });

  it("is neither emitted nor denied of one that is seen ended, by a server that has no times", () => {
    expect(sees(2_000, { state: "EXITED", created: 0, started: 0, codes: { a: 3 } })).toEqual([
      frame(
        fact("pod.prepared", "p", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 3 }),
        fact("pod.exited", "p"),
      ),
    ]);
    const exited = harness.record.at(-1)?.seen;
    expect(exited?.what === "frame" && exited.facts.at(-1)?.detail).not.toHaveProperty("value.started");
  });

  it("waits for the pid as well, and is settled by an observation that says the same", () => {
    expect([sees(2_000, { state: "RUNNING", pid: -1 }), harness.same("pods", 3_000)]).toEqual([
      [],
      [frame(...startedFacts("p"))],
    ]);
  });

  it("is emitted for a pod that has ended by the next observation, or is gone", () => {
    expect([sees(2_000, starting), sees(3_000, { state: "EXITED", codes: { a: 3 }, started: 1_900 })]).toEqual([
      [],
      [frame(...startedFacts("p")), frame(fact("app.exited", "p/a", { exit_code: 3 }), fact("pod.exited", "p"))],
    ]);
    expect(timesOf(harness, "pod.started")).toEqual([{ observed: 2_000, occurred: 1_900 }]);
    const removed = pod("q", starting);
    expect([harness.pods(4_000, removed), harness.pods(5_000), harness.pods(6_000)]).toEqual([
      [],
      [
        frame(...startedFacts("q")),
        frame(fact("pod.collected", "other", { phase: "never-ran" })),
        frame(fact("pod.collected", "p", { phase: "removed" })),
      ],
      [frame(...removedFacts("q"))],
    ]);
  });
});

describe("a host that contradicts the record", () => {
  const exited: PodFields = { state: "EXITED", codes: { a: 7 } };
  const running: PodFields = { state: "RUNNING" };

  beforeEach(() => {
    sees(2_000, running);
    sees(3_000, exited);
  });

  it("is not believed at once, nor twice: lists may slip", () => {
    expect([sees(4_000, running), sees(5_000, running), sees(6_000, exited)]).toEqual([[], [], []]);
    expect([sees(7_000, running), sees(8_000, running), sees(9_000, exited)]).toEqual([[], [], []]);
  });

  it("is believed the third time in a row, whether a list comes whole or is the same, and that is emitted", () => {
    expect([sees(4_000, running), harness.same("pods", 5_000), sees(6_000, running)]).toEqual([
      [],
      [],
      [frame(fact("pod.contradicted", "p"))],
    ]);
    expect(timesOf(harness, "pod.contradicted")).toEqual([{ observed: 6_000, after: 3_000 }]);
    const last = harness.record.at(-1)?.seen;
    const reported = last?.what === "frame" ? last : expect.fail();
    expect(Pod.decode(reported.original?.bytes ?? Buffer.alloc(0)).state).toBe(PodState.POD_STATE_RUNNING);
    expect(reported.facts[0]).toMatchObject({
      subject: "p",
      summary: "pod p is RUNNING by the host's word, though it was EXITED",
      detail: { $case: "pod", value: { state: "RUNNING" } },
    });
    expect(sees(7_000, running)).toEqual([]);
  });

  it("continues from there: the pod's end is emitted again when it comes", () => {
    for (const at of [4_000, 5_000, 6_000]) sees(at, running);
    expect(sees(7_000, { ...exited, codes: { a: 9 } })).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 9 }), fact("pod.exited", "p")),
    ]);
    const again = [8_000, 9_000, 10_000].map((at) => sees(at, running));
    expect(again).toEqual([[], [], [frame(fact("pod.contradicted", "p"))]]);
  });

  it("continues with the same pod for an ingest that knows it from the log alone", () => {
    for (const at of [4_000, 5_000, 6_000]) sees(at, running);
    const other = play();
    for (const event of eventsOf(harness.record)) other.watcher.resume(event);
    expect(other.pods(7_000, pod("other", { state: "PREPARED" }), pod("p", exited))).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 7 }), fact("pod.exited", "p")),
    ]);
  });

  it("does not count what an outage or an absence came between", () => {
    expect([sees(4_000, running), sees(5_000, running), sees(6_000), sees(7_000, running)]).toEqual([[], [], [], []]);
    expect([sees(8_000, running), sees(9_000, running)]).toEqual([[], [frame(fact("pod.contradicted", "p"))]]);
  });

  it("is believed about any state, and about a pod that was collected once", () => {
    sees(4_000, { state: "GARBAGE", codes: { a: 7 } });
    expect([5_000, 6_000, 7_000].map((at) => sees(at, running))).toEqual([
      [],
      [],
      [frame(fact("pod.contradicted", "p"))],
    ]);
    // Its end, and that it is to go, were emitted.
    expect([sees(8_000, exited), sees(9_000, { state: "GARBAGE", codes: { a: 7 } })]).toEqual([
      [frame(fact("pod.changed", "p"))],
      [frame(fact("pod.changed", "p"))],
    ]);
    expect([10_000, 11_000, 12_000].map((at) => sees(at, { state: "PREPARING" }))).toEqual([
      [],
      [],
      [frame(fact("pod.contradicted", "p"))],
    ]);
  });
});

describe("a running pod with apps that have exited", () => {
  const dead: PodFields = { state: "RUNNING", started: 0, pid: -1, appState: AppState.APP_STATE_EXITED };

  it("has died before it started, as the next observation says", () => {
    expect([sees(2_000, dead), sees(3_000, { state: "EXITED", started: 0, pid: -1 })]).toEqual([
      [],
      [frame(fact("pod.prepared", "p", { inferred: true }), fact("pod.exited", "p", { started: false }))],
    ]);
  });

  it("is what it says when it says so twice", () => {
    expect([sees(2_000, dead), sees(3_000, dead), sees(4_000, dead)]).toEqual([[], [frame(...startedFacts("p"))], []]);
  });

  it("is nothing when the pod is gone by then", () => {
    sees(2_000, { state: "PREPARED" });
    expect([sees(3_000, dead), sees(4_000), sees(5_000)]).toEqual([
      [],
      [],
      [frame(fact("pod.collected", "p", { phase: "never-ran" }))],
    ]);
  });

  it("is doubted again when it comes back with the same bytes", () => {
    sees(2_000, { state: "PREPARED" });
    expect([sees(3_000, dead), sees(4_000), sees(5_000, dead), sees(6_000, dead)]).toEqual([
      [],
      [],
      [],
      [frame(fact("pod.started", "p"), fact("app.started", "p/a"))],
    ]);
  });

  it("is not doubted when it says nothing new", () => {
    sees(2_000, dead);
    sees(3_000, dead);
    expect(sees(4_000, { ...dead, codes: { a: -1 } })).toEqual([]);
    const coded = { ...dead, codes: { a: 7 } };
    expect([sees(5_000, coded), sees(6_000, coded)]).toEqual([
      [],
      [frame(fact("app.exited", "p/a", { exit_code: 7 }))],
    ]);
  });

  it("is about to be reported as ended", () => {
    sees(2_000, { state: "RUNNING" });
    const ending: PodFields = { state: "RUNNING", codes: { a: 7 }, appState: AppState.APP_STATE_EXITED };
    expect([sees(3_000, ending), sees(4_000, { state: "EXITED", codes: { a: 7 } })]).toEqual([
      [],
      [frame(fact("app.exited", "p/a", { exit_code: 7 }), fact("pod.exited", "p"))],
    ]);
  });
});

describe("an exit code of zero", () => {
  const zero: PodFields = { state: "EXITED", codes: { a: 15, b: 0 } };
  beforeEach(() => {
    sees(2_000, { state: "RUNNING", codes: { a: 0, b: 0 } });
  });

  it("waits, with the whole end of the pod, for the answer that was asked for at once", () => {
    expect([sees(3_000, zero), inspected(3_001, zero), sees(4_000, zero)]).toEqual([
      [],
      [
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 0 }),
          fact("pod.exited", "p"),
        ),
      ],
      [],
    ]);
    expect(timesOf(harness, "app.exited")).toEqual([
      { observed: 3_000, after: 2_000 },
      { observed: 3_000, after: 2_000 },
    ]);
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 3_000, after: 2_000 }]);
  });

  it("gives way to what that answer knows, which is then in the state as well", () => {
    expect([sees(3_000, zero), inspected(3_001, { state: "EXITED", codes: { a: 0, b: 9 } })]).toEqual([
      [],
      [
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 9 }),
          fact("pod.exited", "p"),
        ),
        frame(fact("pod.changed", "p")),
      ],
    ]);
    expect(sees(4_000, { state: "EXITED", codes: { a: 15, b: 9 } })).toEqual([]);
  });

  it("gives way to what a pod that was marked meanwhile knows", () => {
    const marked: PodFields = { state: "GARBAGE", codes: { a: 15, b: 9 }, marked: 3_000 };
    expect([sees(3_000, zero), inspected(3_001, marked)]).toEqual([
      [],
      [
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 9 }),
          fact("pod.exited", "p"),
        ),
        frame(fact("pod.collected", "p", { phase: "marked" })),
      ],
    ]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 3_001, occurred: 3_000 }]);
  });

  it("is settled by the next observation, whatever that is", () => {
    expect([sees(3_000, zero), harness.same("pods", 4_000)]).toEqual([
      [],
      [
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 0 }),
          fact("pod.exited", "p"),
        ),
      ],
    ]);
  });

  it("is emitted as it was when the pod is gone by then", () => {
    expect([
      sees(3_000, zero),
      harness.refused("pods", 3_001, "p", "unable to resolve UUID"),
      sees(4_000),
      sees(5_000),
    ]).toEqual([
      [],
      [],
      [
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 0 }),
          fact("pod.exited", "p"),
        ),
      ],
      [frame(fact("pod.collected", "p", { phase: "removed" }))],
    ]);
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 3_000, after: 2_000 }]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 4_000, after: 3_000 }]);
  });

  it("waits over an outage", () => {
    expect([sees(3_000, zero), harness.failed("pods", 3_500), sees(4_000, zero)]).toEqual([
      [],
      [],
      [
        gap,
        frame(
          fact("app.exited", "p/a", { exit_code: 15 }),
          fact("app.exited", "p/b", { exit_code: 0 }),
          fact("pod.exited", "p"),
        ),
      ],
    ]);
  });

  it("is not waited for where every code is known, or nothing ever started", () => {
    expect(sees(3_000, { state: "EXITED", codes: { a: 15, b: 7 } })).toEqual([
      frame(
        fact("app.exited", "p/a", { exit_code: 15 }),
        fact("app.exited", "p/b", { exit_code: 7 }),
        fact("pod.exited", "p"),
      ),
    ]);
    expect(harness.pods(4_000, pod("q", { state: "EXITED", started: 0 }))).toContainEqual(
      frame(fact("pod.prepared", "q", { inferred: true }), fact("pod.exited", "q", { started: false })),
    );
  });

  it("is waited for in a pod that is first seen ended", () => {
    const late = pod("q", { state: "EXITED" });
    const ended = frame(
      fact("pod.prepared", "q", { inferred: true }),
      fact("pod.started", "q", { inferred: true }),
      fact("app.started", "q/a", { inferred: true }),
      fact("app.exited", "q/a", { exit_code: 0 }),
      fact("pod.exited", "q"),
    );
    expect(harness.pods(3_000, late)).not.toContainEqual(ended);
    expect(harness.pods(3_500, late)).toContainEqual(ended);
  });

  it("is no code when it comes from a pod that is being deleted", () => {
    expect(sees(3_000, { state: "UNDEFINED", codes: { a: 0 } })).toEqual([
      frame(
        fact("app.exited", "p/a", { inferred: true }),
        fact("app.exited", "p/b", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "deleting" }),
      ),
    ]);
  });
});

describe("exit codes", () => {
  beforeEach(() => {
    sees(2_000, { state: "RUNNING", codes: { a: 0 } });
  });
  const runs = (at: number, codes: PodFields["codes"]) => sees(at, { state: "RUNNING", ...(codes && { codes }) });

  it("are emitted as they come in a running pod, and not again at its end", () => {
    expect([runs(3_000, { a: 7 }), sees(4_000, { state: "EXITED", codes: { a: 7 } })]).toEqual([
      [frame(fact("app.exited", "p/a", { exit_code: 7 }))],
      [frame(fact("pod.exited", "p"))],
    ]);
    expect(timesOf(harness, "app.exited")).toEqual([{ observed: 3_000, after: 2_000 }]);
  });

  it("stay when an answer has lost them, which is no change", () => {
    runs(3_000, { a: 7 });
    expect([sees(4_000, { state: "EXITED" }), sees(5_000, { state: "EXITED", codes: { a: -1 } })]).toEqual([
      [frame(fact("pod.exited", "p"))],
      [],
    ]);
    expect(sees(6_000, { state: "GARBAGE", codes: { a: 0 } })).toEqual([
      frame(fact("pod.collected", "p", { phase: "marked" })),
    ]);
  });

  it("are a change when they come late", () => {
    const exited: PodFields = { state: "EXITED", codes: { a: 0 } };
    expect([sees(3_000, exited), sees(4_000, exited)]).toEqual([
      [],
      [frame(fact("app.exited", "p/a", { exit_code: 0 }), fact("pod.exited", "p"))],
    ]);
    expect(sees(5_000, { state: "EXITED", codes: { a: 9 } })).toEqual([frame(fact("pod.changed", "p"))]);
  });

  it("that are gone or others mean that the app was started again", () => {
    expect([runs(3_000, { a: 7 }), runs(4_000, { a: 0 }), runs(5_000, { a: 7 })]).toEqual([
      [frame(fact("app.exited", "p/a", { exit_code: 7 }))],
      [frame(fact("app.started", "p/a", { inferred: true }))],
      [frame(fact("app.exited", "p/a", { exit_code: 7 }))],
    ]);
    expect(runs(6_000, { a: 8 })).toEqual([
      frame(fact("app.started", "p/a", { inferred: true }), fact("app.exited", "p/a", { exit_code: 8 })),
    ]);
    expect(timesOf(harness, "app.started").slice(1)).toEqual([
      { observed: 4_000, after: 3_000 },
      { observed: 6_000, after: 5_000 },
    ]);
    expect(sees(7_000, { state: "EXITED", codes: { a: 9 } })).toEqual([
      frame(
        fact("app.started", "p/a", { inferred: true }),
        fact("app.exited", "p/a", { exit_code: 9 }),
        fact("pod.exited", "p"),
      ),
    ]);
  });

  it("are there at the first sight of a running pod", () => {
    expect(harness.pods(3_000, pod("q", { state: "RUNNING", codes: { a: 0, b: 3 } }))).toContainEqual(
      frame(
        fact("pod.prepared", "q", { inferred: true }),
        fact("pod.started", "q"),
        fact("app.started", "q/a"),
        fact("app.started", "q/b"),
        fact("app.exited", "q/b", { exit_code: 3 }),
      ),
    );
  });

  it("of -1 could not be read: no code, unless an ended pod says so twice", () => {
    expect([runs(3_000, { a: -1 }), runs(4_000, { a: 7 }), runs(5_000, { a: -1 })]).toEqual([
      [],
      [frame(fact("app.exited", "p/a", { exit_code: 7 }))],
      [],
    ]);
    const unread: PodFields = { state: "EXITED", codes: { a: -1 } };
    const q = (at: number, observation: PodFields) => harness.pods(at, other, pod("q", observation));
    q(6_000, { state: "RUNNING" });
    expect([q(7_000, unread), q(8_000, { state: "EXITED" })].at(-1)).toContainEqual(
      frame(fact("app.exited", "q/a", { exit_code: 0 }), fact("pod.exited", "q")),
    );
    harness = play();
    harness.pods(1, pod("q", { state: "RUNNING" }));
    expect([q(2, unread), q(3, unread)].at(-1)).toContainEqual(
      frame(fact("app.exited", "q/a", { exit_code: -1 }), fact("pod.exited", "q")),
    );
    expect(q(4, unread)).toEqual([]);
    harness = play();
    harness.pods(1, pod("q", { state: "RUNNING" }));
    expect([q(2, { state: "EXITED" }), q(3, unread)].at(-1)).toContainEqual(
      frame(fact("app.exited", "q/a", { exit_code: 0 }), fact("pod.exited", "q")),
    );
  });
});

describe("apps of a pod that goes on", () => {
  beforeEach(() => {
    sees(2_000, { state: "RUNNING", codes: { a: 0, b: 7 } });
  });

  it("are started when they are new, and taken out when they are not listed any more", () => {
    expect(sees(3_000, { state: "RUNNING", codes: { a: 0, b: 7, c: 0 } })).toEqual([
      frame(fact("app.started", "p/c", { inferred: true })),
    ]);
    expect(sees(4_000, { state: "RUNNING", codes: { c: 0 } })).toEqual([frame(fact("app.exited", "p/a"))]);
    const facts = harness.record.flatMap(({ seen }) => (seen.what === "frame" ? seen.facts : []));
    expect(facts.at(-1)?.detail).toMatchObject({ value: { removed: true, exit_code_known: false } });
    expect(facts.at(-1)?.outcome).toBe(Outcome.OUTCOME_UNKNOWN);
    expect(sees(5_000, { state: "RUNNING", codes: {} })).toEqual([frame(fact("app.exited", "p/c"))]);
  });

  it("that have emitted their end are taken out without another", () => {
    expect(sees(3_000, { state: "RUNNING", codes: { a: 0 } })).toEqual([frame(fact("pod.changed", "p"))]);
  });

  it("may come and go with the pod's end", () => {
    expect(sees(3_000, { state: "EXITED", codes: { c: 4 } })).toEqual([
      frame(
        fact("app.started", "p/c", { inferred: true }),
        fact("app.exited", "p/c", { exit_code: 4 }),
        fact("app.exited", "p/a"),
        fact("pod.exited", "p"),
      ),
    ]);
  });

  it("are those known before when the pod is deleted or gone", () => {
    expect([sees(3_000), sees(4_000)]).toEqual([[], [frame(...removedFacts("p"))]]);
  });
});

describe("a pod that is not listed", () => {
  beforeEach(() => {
    sees(2_000, { state: "RUNNING" });
  });
  const running: PodFields = { state: "RUNNING" };

  it("is gone after two observations, at the first of them", () => {
    expect([sees(3_000), sees(4_000), sees(5_000)]).toEqual([[], [frame(...removedFacts("p"))], []]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 3_000, after: 2_000 }]);
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 3_000, after: 2_000 }]);
  });

  it("is gone when an observation says the same as the one that missed it", () => {
    expect([sees(3_000), harness.same("pods", 4_000)]).toEqual([[], [frame(...removedFacts("p"))]]);
  });

  it("is there when it is listed again", () => {
    expect([sees(3_000), sees(4_000, running), sees(5_000), sees(6_000, running)]).toEqual([[], [], [], []]);
  });

  it("is there when it is found by name, and emits what is new about it", () => {
    expect([sees(3_000), inspected(3_001, running), sees(4_000), inspected(4_001, running)]).toEqual([[], [], [], []]);
    expect([sees(5_000), inspected(5_001, { state: "EXITED", codes: { a: 2 } })]).toEqual([
      [],
      [frame(fact("app.exited", "p/a", { exit_code: 2 }), fact("pod.exited", "p"))],
    ]);
  });

  it("is there when it could only not be read", () => {
    expect([sees(3_000), harness.refused("pods", 3_001, "p", "unable to get pod"), sees(4_000)]).toEqual([[], [], []]);
    expect(sees(5_000)).toEqual([frame(...removedFacts("p"))]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 4_000, after: 3_000 }]);
  });

  it("is not proved gone by a name that can't be resolved, or by other errors", () => {
    sees(3_000);
    expect(harness.refused("pods", 3_001, "p", "unable to resolve UUID")).toEqual([]);
    expect(harness.refused("pods", 3_002, "p", "unable to get pod", 14)).toEqual([]);
    expect(harness.refused("pods", 3_003, "stranger", "unable to resolve UUID")).toEqual([]);
    expect(sees(4_000)).toEqual([frame(...removedFacts("p"))]);
  });

  it("must be missed twice without a failure between, and was gone when it was missed first", () => {
    expect([sees(3_000), harness.failed("pods", 4_000), sees(5_000), sees(6_000)]).toEqual([
      [],
      [],
      [gap],
      [frame(...removedFacts("p"))],
    ]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 3_000, after: 2_000 }]);
  });

  it("emits nothing when it had emitted it all", () => {
    sees(3_000, { state: "GARBAGE", codes: { a: 1 } });
    expect([sees(4_000), sees(5_000), sees(6_000)]).toEqual([
      [],
      [frame(fact("pod.changed", "p", { removed: true }))],
      [],
    ]);
  });
});

describe("a pod that comes back after all", () => {
  beforeEach(() => {
    sees(2_000, { state: "RUNNING", codes: { a: 7, b: 0 } });
    sees(3_000);
    expect(sees(4_000)).toEqual([
      frame(
        fact("app.exited", "p/b", { inferred: true }),
        fact("pod.exited", "p", { inferred: true }),
        fact("pod.collected", "p", { phase: "removed" }),
      ),
    ]);
  });

  it("is a change, and emits nothing twice", () => {
    expect(sees(5_000, { state: "RUNNING", codes: { a: 7, b: 0 } })).toEqual([frame(fact("pod.changed", "p"))]);
    expect(sees(6_000, { state: "EXITED", codes: { a: 7, b: 3 } })).toEqual([frame(fact("pod.changed", "p"))]);
    expect(sees(7_000, { state: "GARBAGE", codes: { a: 7, b: 3 } })).toEqual([frame(fact("pod.changed", "p"))]);
    expect([sees(8_000), sees(9_000), sees(9_500)]).toEqual([
      [],
      [frame(fact("pod.changed", "p", { removed: true }))],
      [],
    ]);
    expect(sees(10_000, { state: "GARBAGE", codes: { a: 7, b: 3 } })).toEqual([frame(fact("pod.changed", "p"))]);
  });

  it("goes on from where it was", () => {
    harness.pods(5_000, other, pod("q", { state: "PREPARED" }));
    harness.pods(6_000, other);
    expect(harness.pods(7_000, other)).toEqual([frame(fact("pod.collected", "q", { phase: "never-ran" }))]);
    expect(harness.pods(8_000, other, pod("q", { state: "RUNNING" }))).toEqual([
      frame(fact("pod.started", "q"), fact("app.started", "q/a")),
    ]);
    expect(harness.pods(9_000, other, pod("q", { state: "EXITED", codes: { a: 3 } }))).toEqual([
      frame(fact("app.exited", "q/a", { exit_code: 3 }), fact("pod.exited", "q")),
    ]);
    expect(harness.pods(10_000, other, pod("q", { state: "GARBAGE", codes: { a: 3 } }))).toEqual([
      frame(fact("pod.changed", "q")),
    ]);
  });

  it("emits an end that was not emitted, and that it is gone, when it goes again", () => {
    harness.pods(5_000, other, pod("q", { state: "PREPARED" }));
    for (const at of [6_000, 7_000]) harness.pods(at, other);
    harness.pods(8_000, other, pod("q", { state: "RUNNING" }));
    expect([harness.pods(9_000, other), harness.pods(10_000, other)]).toEqual([
      [],
      [
        frame(
          fact("app.exited", "q/a", { inferred: true }),
          fact("pod.exited", "q", { inferred: true }),
          fact("pod.changed", "q", { removed: true }),
        ),
      ],
    ]);
  });

  it("is concluded from lists alone: an answer to its name may be older than its absence", () => {
    expect(inspected(4_001, { state: "RUNNING", codes: { a: 7, b: 0 } })).toEqual([]);
    expect(sees(5_000, { state: "RUNNING", codes: { a: 7, b: 0 } })).toEqual([frame(fact("pod.changed", "p"))]);
  });
});

describe("a pod that was marked", () => {
  it("ended before that, as its time says, if nobody saw its end", () => {
    sees(2_000, { state: "RUNNING" });
    sees(5_000, { state: "GARBAGE", marked: 4_000 });
    expect(timesOf(harness, "app.exited")).toEqual([{ observed: 5_000, occurred: 4_000, after: 2_000 }]);
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 5_000, occurred: 4_000, after: 2_000 }]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 5_000, occurred: 4_000 }]);
  });

  it("ended when it was seen if the clocks differ, and never before the interval begins", () => {
    sees(2_000, { state: "RUNNING" });
    sees(5_000, { state: "GARBAGE", marked: 6_000 });
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 5_000, after: 2_000 }]);
    harness.pods(6_000, pod("q", { state: "RUNNING" }));
    harness.pods(7_000, pod("q", { state: "GARBAGE", marked: 1_000 }));
    expect(timesOf(harness, "pod.exited").at(-1)).toEqual({ observed: 7_000, occurred: 1_000 });
  });
});

describe("another change of a pod", () => {
  it("is emitted as a change: apps, networks, sizes, whatever is in the bytes", () => {
    expect(sees(2_000, { state: "PREPARING", codes: {} })).toEqual([frame(fact("pod.changed", "p"))]);
    expect(sees(3_000, { state: "PREPARING" })).toEqual([frame(fact("pod.changed", "p"))]);
    expect(sees(4_000, { state: "PREPARED" })).toEqual([frame(fact("pod.prepared", "p"))]);
    expect(sees(5_000, { state: "RUNNING" })).toEqual([frame(fact("pod.started", "p"), fact("app.started", "p/a"))]);
    expect(sees(6_000, { state: "RUNNING", more: { networks: [] } })).toEqual([frame(fact("pod.changed", "p"))]);
  });

  it("is nothing when it is accepted as the same", () => {
    sees(2_000, { state: "RUNNING" });
    const nameless = pod("p", { state: "RUNNING" }).apps.map((app) => ({
      ...app,
      image: { id: "sha512-1", name: "", version: "", base_format: undefined } as never,
    }));
    expect(sees(3_000, { state: "RUNNING", more: { apps: nameless } })).toEqual([]);
    expect(sees(4_000, { state: "RUNNING", pid: -1, started: 0 })).toEqual([]);
  });

  it("does not depend on the order of the list, or on one that has a pod twice", () => {
    const p = pod("p", { state: "RUNNING" });
    harness.pods(2_000, other, p);
    expect(harness.pods(3_000, p, other, other, pod("p", { state: "RUNNING", codes: { a: 7 } }))).toEqual([]);
  });
});

describe("a frame", () => {
  const frames = () =>
    harness.record.flatMap(({ seen }): Extract<ObservationOutcome, { what: "frame" }>[] =>
      seen.what === "frame" ? [seen] : [],
    );

  it("has the pod as listed, and facts with what people and views need", () => {
    const listed = pod("c6e226b0-5014", { state: "EXITED", codes: { worker: 7, log: 3 }, name: "redis-1" });
    harness.pods(2_000, other, listed);
    const { original, facts } = frames().at(-1) ?? { facts: [] };
    expect(original).toMatchObject({ type: "v1alpha.Pod", redacted: 0 });
    expect(Pod.decode(original?.bytes ?? Buffer.alloc(0))).toEqual(listed);
    expect(facts.map(({ summary, subject }) => [summary, subject])).toEqual([
      ["pod redis-1 prepared", "c6e226b0-5014"],
      ["pod redis-1 started", "c6e226b0-5014"],
      ["app worker of redis-1 started", "c6e226b0-5014/worker"],
      ["app log of redis-1 started", "c6e226b0-5014/log"],
      ["app worker of redis-1 exited with 7", "c6e226b0-5014/worker"],
      ["app log of redis-1 exited with 3", "c6e226b0-5014/log"],
      ["pod redis-1 exited", "c6e226b0-5014"],
    ]);
    const error = { code: "7", message: "exited with 7", suggestions: [] };
    expect(facts[4]).toEqual({
      kind: "app.exited",
      subject: "c6e226b0-5014/worker",
      summary: "app worker of redis-1 exited with 7",
      inferred: false,
      outcome: Outcome.OUTCOME_FAILED,
      error,
      notBefore: { seconds: 1n, nanos: 0 },
      operation: { kind: "app", subject: "c6e226b0-5014/worker", runner: 0, loop: 0 },
      detail: {
        $case: "app",
        value: {
          pod: "c6e226b0-5014",
          app: "worker",
          image_id: "sha512-1",
          image_name: "sim.example/worker",
          image_version: "1.2.0",
          exit_code: 7,
          exit_code_known: true,
          removed: false,
        },
      },
    });
    expect(facts[6]).toEqual({
      kind: "pod.exited",
      subject: "c6e226b0-5014",
      summary: "pod redis-1 exited",
      inferred: false,
      outcome: Outcome.OUTCOME_FAILED,
      error: { ...error, message: "worker exited with 7" },
      notBefore: { seconds: 1n, nanos: 0 },
      operation: { kind: "pod", subject: "c6e226b0-5014", runner: 0, loop: 0 },
      detail: {
        $case: "pod",
        value: {
          pod: "c6e226b0-5014",
          name: "redis-1",
          state: "EXITED",
          phase: "",
          last_state: "",
          started: true,
          pid: 77,
          cgroup: "",
          networks: ["default=172.16.28.2"],
          apps: ["worker", "log"],
          removed: false,
        },
      },
    });
  });

  it("says short names of pods without one, and unknown outcomes", () => {
    harness.pods(2_000, other, pod("c6e226b0-5014", { state: "GARBAGE", codes: { worker: 0 } }));
    expect(
      frames()
        .at(-1)
        ?.facts.map(({ summary, outcome, error }) => [summary, outcome ?? 0, error]),
    ).toEqual([
      ["pod c6e226b0 prepared", 0, undefined],
      ["pod c6e226b0 started", 0, undefined],
      ["app worker of c6e226b0 started", 0, undefined],
      ["app worker of c6e226b0 exited", Outcome.OUTCOME_UNKNOWN, undefined],
      ["pod c6e226b0 exited", Outcome.OUTCOME_UNKNOWN, undefined],
      ["pod c6e226b0 is to be collected", 0, undefined],
    ]);
    expect(frames().at(-1)?.facts[5]?.operation).toBeUndefined();
  });

  it("says that a pod has failed also when it is being deleted and has no codes any more", () => {
    sees(2_000, { state: "RUNNING", codes: { a: 7 } });
    sees(3_000, { state: "UNDEFINED", codes: {} });
    expect(frames().at(-1)?.facts[0]).toMatchObject({ kind: "pod.exited", outcome: Outcome.OUTCOME_FAILED });
  });

  it("has no original of a pod that is not listed any more, but its last state", () => {
    sees(2_000, { state: "RUNNING", codes: { a: 7 } });
    sees(3_000);
    sees(4_000);
    const { original, facts, observedAt } = frames().at(-1) ?? { facts: [] };
    expect([original, observedAt?.seconds]).toEqual([undefined, 3n]);
    expect(facts.map(({ kind, outcome }) => [kind, outcome])).toEqual([
      ["pod.exited", Outcome.OUTCOME_FAILED],
      ["pod.collected", undefined],
    ]);
    expect(facts[1]?.detail).toMatchObject({
      value: {
        phase: "removed",
        last_state: "RUNNING",
        state: "RUNNING",
      },
    });
  });
});
