import fc from "fast-check";
import { expect, it } from "vitest";
import { subjectMatches } from "../subject-match.ts";
import { SubjectIndex } from "./subject-index.ts";

const token = fc.constantFrom("a", "b", "c");
const subject = fc.array(token, { minLength: 1, maxLength: 5 }).map((tokens) => tokens.join("."));
const filter = fc
  .tuple(fc.array(fc.oneof(token, fc.constant("*")), { minLength: 1, maxLength: 5 }), fc.boolean())
  .map(([tokens, isOpen]) => [...tokens, ...(isOpen ? [">"] : [])].join("."));

it("finds the values whose filters match, and no others, while filters come and go", () => {
  const property = fc.property(fc.array(filter), fc.array(filter), fc.array(subject), (kept, removed, subjects) => {
    const index = new SubjectIndex<number>();
    const filters = [...kept, ...removed];
    filters.forEach((one, value) => void index.add(one, value));
    removed.forEach((one, number) => void index.delete(one, kept.length + number));
    for (const one of subjects) {
      const found: number[] = [];
      index.visit(one.split("."), (value) => found.push(value));
      const expected = kept.flatMap((pattern, value) => (subjectMatches(pattern, one) ? [value] : []));
      expect(found.sort((a, b) => a - b)).toEqual(expected);
    }
    kept.forEach((one, value) => void index.delete(one, value));
    expect(index.isEmpty).toBe(true);
  });
  fc.assert(property, { numRuns: 500 });
});
