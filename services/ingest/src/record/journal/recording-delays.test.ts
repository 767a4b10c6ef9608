import { expect, it } from "vitest";
import { RecordingDelays } from "./recording-delays.ts";

it("a delay is seen while it lasts, and for a second or two after it", () => {
  let now = 10_000;
  const delays = new RecordingDelays(() => now);
  expect(delays.currentMs).toBe(0);
  const ended = delays.began();
  now += 300;
  expect(delays.currentMs).toBe(300);
  now += 100;
  ended();
  delays.began()();
  expect(delays.currentMs).toBe(400);
  now += 1_000;
  expect(delays.currentMs).toBe(400);
  now += 1_000;
  expect(delays.currentMs).toBe(0);
});

it("a delay is forgotten where nothing was recorded for long", () => {
  let now = 10_000;
  const delays = new RecordingDelays(() => now);
  const ended = delays.began();
  now += 300;
  ended();
  now += 60_000;
  expect(delays.currentMs).toBe(0);
});
