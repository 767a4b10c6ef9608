import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { delayMs, type PollPace } from "./pace.ts";

const pace: PollPace = {
  tookMs: [2, 2],
  inspectMs: [],
  roundTripMs: 1,
  share: 0.016,
  intervalMs: 1_000,
  isChanging: false,
};

describe("the time between two polls", () => {
  it.each<[string, Partial<PollPace>, number]>([
    ["is the interval where a list costs little", {}, 1_000],
    ["is short while something changes", { isChanging: true }, 200],
    ["is never longer for a change", { isChanging: true, intervalMs: 100 }, 100],
    ["grows with the cost of a list", { tookMs: [541, 541] }, 33_210],
    ["… also while something changes", { tookMs: [541, 541], isChanging: true }, 33_210],
    ["… as far as it has to, where that is more often than the interval", { tookMs: [9, 9], isChanging: true }, 492],
    ["does not count the way to a host that is far", { tookMs: [81, 81], roundTripMs: 80 }, 1_000],
    ["counts the quickest of the last answers", { tookMs: [2, 700, 2, 900, 2] }, 1_000],
    ["is as long as the last answer took at least", { tookMs: [2, 2, 3_000] }, 3_000],
    [
      "counts what was asked about an observation, without the way",
      { tookMs: [9, 9], inspectMs: Array(50).fill(4) },
      9_717,
    ],
    ["… each at most as a list, as what takes longer has waited", { tookMs: [9, 9], inspectMs: [6_000, 4_000] }, 1_476],
    ["does not judge by the first answer", { tookMs: [900] }, 1_000],
    ["nor by none", { tookMs: [] }, 1_000],
    ["takes an answer that was quicker than the way for no cost", { tookMs: [1, 1], roundTripMs: 5 }, 1_000],
  ])("%s", (_, more, expected) => {
    expect(Math.round(delayMs({ ...pace, ...more }))).toBe(expected);
  });

  it("keeps polls within their share of a processor, whatever they cost", () => {
    const ms = fc.double({ min: 0, max: 60_000, noNaN: true });
    fc.assert(
      fc.property(ms, fc.double({ min: 1, max: 60_000, noNaN: true }), fc.boolean(), (list, intervalMs, isChanging) => {
        const inspectMs = Array<number>(50).fill(list / 20);
        const pause = delayMs({ ...pace, tookMs: [list, list], inspectMs, roundTripMs: 0, intervalMs, isChanging });
        const cost = list + 50 * (list / 20);
        expect(cost / (cost + pause)).toBeLessThanOrEqual(pace.share + 1e-9);
      }),
    );
  });
});
