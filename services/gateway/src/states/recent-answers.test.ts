import { expect, it } from "vitest";
import type { ReadState } from "../query-client.ts";
import { RecentAnswers } from "./recent-answers.ts";

const answer = (bytes: number): ReadState => ({
  head: { position: "", source: "", session: "", session_ended: false, heard_at: {} } as never,
  rows: [{ key: "", bytes: new Uint8Array(bytes) }],
});

it("the answer that was requested longest ago leaves first when there is no room", () => {
  const answers = new RecentAnswers({ maxBytes: 10_000, maxAgeMs: 1_000 });
  for (const name of ["a", "b"]) answers.put(name, answer(3_000));
  answers.get("a");
  answers.put("c", answer(3_000));
  expect(["a", "b", "c"].map((name) => answers.get(name) !== undefined)).toEqual([true, false, true]);
  expect(answers.bytes).toBeLessThanOrEqual(10_000);
});

it("an answer that has no room alone drives out no other one", () => {
  const answers = new RecentAnswers({ maxBytes: 10_000, maxAgeMs: 1_000 });
  answers.put("a", answer(3_000));
  answers.put("b", answer(20_000));
  expect(["a", "b"].map((name) => answers.get(name) !== undefined)).toEqual([true, false]);
});

it("an answer takes the place of the one before, and its bytes", () => {
  const answers = new RecentAnswers({ maxBytes: 10_000, maxAgeMs: 1_000 });
  const [large, small] = [answer(8_000), answer(10)];
  answers.put("a", large);
  answers.put("a", small);
  expect(answers.get("a")).toBe(small);
  expect(answers.bytes).toBeLessThan(2_000);
});

it("an answer that is too old is not given again, and takes no room", () => {
  let now = 0;
  const answers = new RecentAnswers({ maxBytes: 10_000, maxAgeMs: 1_000, now: () => now });
  answers.put("a", answer(10));
  now = 1_000;
  expect(answers.get("a")).toBeDefined();
  now = 1_001;
  expect(answers.get("a")).toBeUndefined();
  expect(answers.bytes).toBe(0);
});
