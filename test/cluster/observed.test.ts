import { expect, it } from "vitest";
import { judged, type Observed } from "./observed.ts";

const row = (name: string, times: Partial<Observed> = {}): Observed => ({
  ...{ name, from: 0, to: 1, load: 4, recording: 9_000, live: 9_000, reads: { state: 1_900, events: 9_000 } },
  ...times,
});

it("times past a goal are missed, unless the machine is busy", () => {
  const slow = { recording: 10_500, reads: { state: 2_400, events: 0 } };
  expect(judged([row("good"), row("slow", slow), row("busy", { ...slow, load: 6.1 })], 2)).toEqual({
    missed: ["slow: recording 10.50 s, the goal is 10.00 s", "slow: state 2.40 s, the goal is 2.00 s"],
    notJudged: ["busy (load 6.1)"],
  });
});

it("pages of events have no goal: they wait for an election of NATS", () => {
  expect(judged([row("election", { reads: { state: 100, events: 60_000 } })], 2).missed).toEqual([]);
});
