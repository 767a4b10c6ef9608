import { expect, it } from "vitest";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { Injections } from "./injections.ts";

const plain = plainNormalizer({ name: "a", replays: true });
const frame = Buffer.from("12 x");

it("calls whose event never comes do not slow the frames down", () => {
  let compared = 0;
  const matches = () => {
    compared++;
    return false;
  };
  const expected = new Injections({ ...plain, injects: () => ({ channel: "a", matches }) }, []);
  for (let i = 0; i < 1_000; i++) expected.expect(`call ${i}`, "handle", Buffer.from("nothing"));
  expect(expected.take("a", frame)).toBe(false);
  expect(compared).toBeLessThan(50);
});

it("an event is waited for until it comes, once", () => {
  const expected = new Injections(plain, []);
  expected.expect("1", "handle", Buffer.from("x"));
  expected.expect("2", "handle", Buffer.from("y"));
  expected.forget("2");
  expect([1, 2].map(() => expected.take("a", frame))).toEqual([true, false]);
  expect(expected.take("a", Buffer.from("13 y"))).toBe(false);
});
