import { expect, it } from "vitest";
import { folds } from "../../views/folds.ts";
import { collectionsOf } from "../collections.ts";
import { foldedOf, type HeldState, ReadableState, RecentStates } from "./recent-states.ts";

it("holds no more empty collections than its limit lets it pay for", () => {
  const collections = foldedOf(collectionsOf(folds).values(), folds.rkt);
  const names = collections.map(({ name }) => name);
  const empty = { tables: {} as HeldState["tables"], state: new ReadableState(() => []) };
  const recent = new RecentStates(64 * 1024);
  const questions = Array.from({ length: 100 }, (_, n) => `question ${n}`);
  for (const question of questions) recent.put(question, empty, collections);
  const held = questions.filter((question) => recent.get(question, names) !== undefined);
  expect(held.length).toBeLessThanOrEqual(64 / names.length);
  expect(held).toContain("question 99");
});
