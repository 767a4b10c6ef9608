import { expect, it } from "vitest";
import { subjectMatches, withoutCovered } from "./subject-match.ts";

it.each([
  ["a.b.c", "a.b.c", true],
  ["a.*.c", "a.b.c", true],
  ["a.>", "a.b.c", true],
  [">", "a", true],
  ["a.b.>", "a.b", false],
  ["a.b", "a.b.c", false],
  ["a.b.c", "a.b", false],
  ["a.*", "b.c", false],
])("%s on %s: %s", (filter, subject, yes) => {
  expect(subjectMatches(filter, subject)).toBe(yes);
});

it("a set keeps only subjects that no other one covers", () => {
  expect(withoutCovered(["a.b.c", "a.*.c", "a.b.c", "a.c.>", "a.c.d.>"])).toEqual(["a.*.c", "a.c.>"]);
  expect(withoutCovered(["a.b", "a.b"])).toEqual(["a.b"]);
  expect(withoutCovered(["a.>", "a.*"])).toEqual(["a.>"]);
});
