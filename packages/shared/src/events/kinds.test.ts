import { expect, it } from "vitest";
import { kindNoun, kinds, operationKinds } from "./kinds.ts";

it("has an operation for each noun with a start and an outcome", () => {
  const has = (noun: string, verbs: readonly string[]) =>
    verbs.some((verb) => kinds.some((k) => k === `${noun}.${verb}`));
  const nouns = [...new Set(kinds.map(kindNoun))];
  const paired = nouns.filter(
    (noun) => has(noun, ["started"]) && has(noun, ["succeeded", "failed", "canceled", "exited", "finished"]),
  );
  // Nothing reports that an upstream begins.
  expect([...paired, "init"].toSorted()).toEqual(operationKinds.toSorted());
});
