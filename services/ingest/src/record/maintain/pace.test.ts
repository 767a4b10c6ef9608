import { expect, it } from "vitest";
import { Pace } from "./pace.ts";

const steps = async (pace: Pace, count: number) => {
  for (let step = 0; step < count; step++) await pace.rest(0);
};

it("work takes all of the time where nothing is delayed", async () => {
  const pace = new Pace({ minShare: 0.25, recordingMs: () => 10 });
  expect(pace.share).toBe(0.25);
  await steps(pace, 50);
  expect(pace.share).toBe(1);
});

it("work takes its least share while recording is delayed, and never less", async () => {
  let recordingMs = 0;
  const pace = new Pace({ minShare: 0.2, recordingMs: () => recordingMs });
  await steps(pace, 50);
  recordingMs = 100;
  await steps(pace, 1);
  expect(pace.share).toBe(0.5);
  await steps(pace, 5);
  expect(pace.share).toBe(0.2);
});

it("steps are done one after the other", async () => {
  const pace = new Pace({ minShare: 1, recordingMs: () => 0 });
  const { signal } = new AbortController();
  let running = 0;
  const step = async () => {
    expect(++running).toBe(1);
    await Promise.resolve();
    running--;
  };
  await Promise.all([1, 2, 3].map(() => pace.step(step, signal)));
});
