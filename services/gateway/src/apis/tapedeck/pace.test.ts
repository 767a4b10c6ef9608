import { describe, expect, it } from "vitest";
import type { SubscriptionMessage } from "./messages.ts";
import { type Clock, pace, type ReplaySpeed } from "./pace.ts";

const hour = 3_600_000;

/** An event that was recorded so many milliseconds after the first, or a mark. */
type SentMessage = number | "caught_up" | "bookmark" | "complete" | "state";

function message(reported: SentMessage): SubscriptionMessage {
  const rest = { position: "e-1", json: "", protoUpTo: () => new Uint8Array() };
  if (typeof reported !== "number") return { ...rest, type: reported };
  return { ...rest, type: "event", recordedAt: new Date(Date.parse("2026-01-31T12:00:00Z") + reported) };
}

/** Time passes only while somebody pauses. */
function handClock() {
  let now = 0;
  const pauses: number[] = [];
  const clock: Clock = {
    now: () => now,
    async delay(ms) {
      pauses.push(ms);
      now += ms;
    },
  };
  return {
    clock,
    pauses,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

/** When each was given. */
async function given(
  reported: readonly SentMessage[],
  speed: ReplaySpeed,
  { readerMs = [] }: { readerMs?: readonly number[] } = {},
) {
  const { clock, pauses, pass } = handClock();
  const source = async function* () {
    for (const one of reported) yield message(one);
  };
  const at: [string, number][] = [];
  for await (const { type } of pace(source(), speed, new AbortController().signal, clock)) {
    at.push([type, clock.now()]);
    pass(readerMs[at.length - 1] ?? 0);
  }
  return { at, pauses };
}

const times = async (...request: Parameters<typeof given>) => (await given(...request)).at.map(([, ms]) => ms);

describe("history at a speed", () => {
  it.each<[ReplaySpeed, number[]]>([
    [1, [0, 0, 200, 5_000]],
    [10, [0, 0, 20, 500]],
    [0.5, [0, 0, 400, 10_000]],
    [1_000, [0, 0, 0.2, 5]],
    ["max", [0, 0, 0, 0]],
  ])("%s keeps the gaps between recordings, divided by it", async (speed, expected) => {
    expect(await times([0, 0, 200, 5_000], speed)).toEqual(expected);
  });

  it("begins at once, however long ago it was", async () => {
    expect(await times([90 * 24 * hour, 90 * 24 * hour + 10], 1)).toEqual([0, 10]);
  });

  it("keeps gaps that are longer than a timer takes", async () => {
    const { at, pauses } = await given([0, 60 * 24 * hour], 1);
    expect(at.at(-1)).toEqual(["event", 60 * 24 * hour]);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(hour);
  });

  it("does not wait for what was recorded before the one before it", async () => {
    expect(await times([0, 500, 400, 600], 1)).toEqual([0, 500, 500, 600]);
  });

  it("gives a slow reader what is due, and is on time again when the reader is", async () => {
    expect(await times([0, 100, 200, 900], 1, { readerMs: [350] })).toEqual([0, 350, 350, 900]);
  });

  it("gives marks and state when they come, and what is live without a wait", async () => {
    expect((await given(["state", 0, "bookmark", 100, "caught_up", 9_000, "bookmark", 99_000], 1)).at).toEqual([
      ["state", 0],
      ["event", 0],
      ["bookmark", 0],
      ["event", 100],
      ["caught_up", 100],
      ["event", 100],
      ["bookmark", 100],
      ["event", 100],
    ]);
  });

  it("ends where its source does", async () => {
    expect((await given([0, 100, "complete"], 1)).at.at(-1)).toEqual(["complete", 100]);
    expect((await given([], 1)).at).toEqual([]);
  });
});

it("ends with the signal in the middle of a gap, and closes its source", async () => {
  const over = new AbortController();
  let isClosed = false;
  const source = async function* () {
    try {
      yield message(0);
      yield message(hour);
    } finally {
      isClosed = true;
    }
  };
  const clock: Clock = { now: () => 0, delay: async () => over.abort() };
  const types: string[] = [];
  for await (const { type } of pace(source(), 1, over.signal, clock)) types.push(type);
  expect(types).toEqual(["event"]);
  expect(isClosed).toBe(true);
});
