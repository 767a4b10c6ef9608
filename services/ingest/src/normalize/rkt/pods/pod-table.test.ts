import { describe, expect, it } from "vitest";
import { play, pod } from "../testing/host-play.ts";
import { type Last, type Now, podTable, type State } from "./pod-table.ts";

/** What a pod `p` with one app `a` tells that was known so (rows) and is answered so from now on (columns). */
const expected: Readonly<Record<Last, Readonly<Record<Now, string>>>> = {
  new: {
    PREPARING: "changed",
    PREPARED: "P",
    RUNNING: "(P) S s:a",
    ABORTED_PREPARE: "A",
    EXITED: "(P) (S) (s:a) x:a=0 X",
    GARBAGE: "(P) (S) (s:a) (x:a=0) (X) marked",
    UNDEFINED: "(P) (x:a=?) (X) deleting",
    absent: "",
  },
  PREPARING: {
    PREPARING: "",
    PREPARED: "P",
    RUNNING: "(P) S s:a",
    ABORTED_PREPARE: "A",
    EXITED: "(P) (S) (s:a) x:a=0 X",
    GARBAGE: "(P) (S) (s:a) (x:a=0) (X) marked",
    UNDEFINED: "(P) (x:a=?) (X) deleting",
    absent: "(removed)",
  },
  PREPARED: {
    PREPARING: "",
    PREPARED: "",
    RUNNING: "S s:a",
    ABORTED_PREPARE: "",
    EXITED: "(S) (s:a) x:a=0 X",
    GARBAGE: "(S) (s:a) (x:a=0) (X) marked",
    UNDEFINED: "(x:a=?) (X) deleting",
    absent: "never-ran",
  },
  RUNNING: {
    PREPARING: "",
    PREPARED: "",
    RUNNING: "",
    ABORTED_PREPARE: "",
    EXITED: "x:a=0 X",
    GARBAGE: "(x:a=0) (X) marked",
    UNDEFINED: "(x:a=?) (X) deleting",
    absent: "(x:a=?) (X) removed",
  },
  ABORTED_PREPARE: {
    PREPARING: "",
    PREPARED: "P",
    RUNNING: "(P) S s:a",
    ABORTED_PREPARE: "",
    EXITED: "(P) (S) (s:a) x:a=0 X",
    GARBAGE: "(P) (S) (s:a) (x:a=0) (X) marked",
    UNDEFINED: "(P) (x:a=?) (X) deleting",
    absent: "never-ran",
  },
  EXITED: {
    PREPARING: "",
    PREPARED: "",
    RUNNING: "",
    ABORTED_PREPARE: "",
    EXITED: "",
    GARBAGE: "marked",
    UNDEFINED: "deleting",
    absent: "removed",
  },
  GARBAGE: {
    PREPARING: "",
    PREPARED: "",
    RUNNING: "",
    ABORTED_PREPARE: "",
    EXITED: "",
    GARBAGE: "",
    UNDEFINED: "changed",
    absent: "gone",
  },
  UNDEFINED: {
    PREPARING: "",
    PREPARED: "",
    RUNNING: "",
    ABORTED_PREPARE: "",
    EXITED: "",
    GARBAGE: "changed",
    UNDEFINED: "",
    absent: "gone",
  },
};

const cells = Object.entries(expected).flatMap(([last, row]) =>
  Object.entries(row).map(([now, told]) => [last as Last, now as Now, told] as const),
);
const other = pod("other", { state: "PREPARED" });
const listed = (state: Last | Now) =>
  state === "new" || state === "absent" ? [other] : [other, pod("p", { state: state as State })];

const isImpossible = (last: Last, now: Now) => podTable[last][now] === undefined;

describe("a pod's change of state", () => {
  it.each(cells)("%s → %s: %s", (last, now, told) => {
    const { pods } = play();
    pods(1, ...listed(last));
    // What is doubtful at first is settled by the second look.
    const looks = [pods(10_000, ...listed(now)), pods(11_000, ...listed(now))];
    expect(looks.filter(Boolean)).toEqual(told === "" ? [] : [told]);
    // A host that insists on what can't be is believed the third time.
    expect(pods(12_000, ...listed(now))).toBe(isImpossible(last, now) ? "contradicted" : "");
  });

  it("knows the states that rkt has and never answers", () => {
    const { pods } = play();
    pods(1);
    expect(pods(2, pod("p", { state: "EMBRYO" }))).toBe("changed");
    expect(pods(3, pod("p", { state: "PREPARED" }))).toBe("P");
    expect(pods(4, pod("p", { state: "DELETING" }))).toBe("(x:a=?) (X) deleting");
  });

  it("says nothing of a state that is not known, and goes on from the one before", () => {
    const { pods } = play();
    const odd = pod("p", { state: "RUNNING", more: { state: 42 as never } });
    pods(1, pod("p", { state: "PREPARED" }));
    expect(pods(2, odd, pod("q", { state: "RUNNING", more: { state: 42 as never } }))).toBe("");
    expect(pods(3, pod("p", { state: "RUNNING" }), pod("q", { state: "PREPARED" }))).toBe("S s:a | P");
  });
});
