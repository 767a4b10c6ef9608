import { expect, it } from "vitest";
import { templateError } from "./template.ts";

it.each([
  [32, undefined],
  [33, "is nested too deep: at most 32 levels"],
  [100_000, "is nested too deep: at most 32 levels"],
])("a template may have 32 levels, and is refused with more: %i", (levels, error) => {
  let nested: unknown = "{{text}}";
  for (let level = 1; level < levels; level++) nested = [nested];
  expect(templateError({ text: nested })).toBe(error);
});
