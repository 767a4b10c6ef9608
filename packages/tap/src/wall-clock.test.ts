import { expect, it } from "vitest";
import { wallClock } from "./wall-clock.ts";

it("wallClock has finer steps than the wall clock, and follows it through sleeps and adjustments", () => {
  let wall = 1_000_000;
  let steady = 5;
  const now = wallClock({ wall: () => wall, steady: () => steady });
  const pass = (ms: number) => {
    wall += Math.floor(ms);
    steady += ms;
  };
  pass(1.25);
  expect(now()).toEqual({ seconds: 1_000n, nanos: 1_250_000 });
  // The machine sleeps for eight hours.
  wall += 8 * 3_600_000;
  expect(now()).toEqual({ seconds: 29_800n, nanos: 1_000_000 });
  // Somebody sets the clock back.
  wall -= 3_600_000;
  pass(2.5);
  expect(now()).toEqual({ seconds: 26_200n, nanos: 3_000_000 });
});
