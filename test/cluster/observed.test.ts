import { expect, it } from "vitest";
import { judged, type Observed } from "./observed.ts";

const row = (name: string, times: Partial<Observed> = {}): Observed => ({
  name,
  from: 0,
  to: 1,
  load: 4,
  recording: 9_000,
  live: 9_000,
  reads: { state: 1_900, events: 1_900 },
  ...times,
});

it("times past a goal are missed, unless the machine is busy", () => {
  const slow = { recording: 10_500, reads: { state: 2_400, events: 2_100 } };
  expect(judged([row("good"), row("slow", slow), row("busy", { ...slow, load: 6.1 })], 2)).toEqual({
    missed: [
      "slow: recording 10.50 s, the goal is 10.00 s",
      "slow: state 2.40 s, the goal is 2.00 s",
      "slow: events 2.10 s, the goal is 2.00 s",
    ],
    notJudged: ["busy (load 6.1)"],
  });
});

it("a fault may excuse slow pages of events, and nothing else", () => {
  const slow = { excused: "events", reads: { state: 2_400, events: 5_000 } } as const;
  expect(judged([row("unreachable", slow)], 2).missed).toEqual(["unreachable: state 2.40 s, the goal is 2.00 s"]);
});
