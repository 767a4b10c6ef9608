import { expect, it } from "vitest";
import { Breaker } from "./breaker.ts";

it("while the usual way fails, one caller tries it now and then, and the others go the other way", () => {
  let now = 0;
  const breaker = new Breaker(30_000, () => now);
  const ways = () => [breaker.next(), breaker.next()];
  expect(ways()).toEqual(["primary", "primary"]);
  breaker.failed();
  expect(ways()).toEqual(["other", "other"]);
  now = 2_000;
  expect(ways()).toEqual(["primary", "other"]);
  breaker.succeeded();
  expect(ways()).toEqual(["primary", "primary"]);
});

it("there is no other way any more for those who fail for longer than an election takes", () => {
  let now = 0;
  const breaker = new Breaker(30_000, () => now);
  breaker.failed();
  now = 29_000;
  breaker.failed();
  expect([breaker.mayAvoid(), breaker.next()]).toEqual([true, "other"]);
  now = 30_000;
  expect([breaker.mayAvoid(), breaker.next(), breaker.next()]).toEqual([false, "primary", "primary"]);
  breaker.succeeded();
  breaker.failed();
  expect(breaker.next()).toBe("other");
});
