import { expect, it } from "vitest";
import { z } from "zod";
import { issueText } from "./schema-error.ts";

it.each<[value: unknown, schema: z.ZodType, text: string]>([
  [51, z.int().max(50), "must be at most 50"],
  [1.5, z.int(), "must be a whole number"],
  [0, z.number().gt(0), "must be above 0"],
  [undefined, z.string(), "is missing"],
  [null, z.string(), "must be a text"],
  ["", z.string().min(1), "must not be empty"],
  ["abc", z.string().max(2), "must have at most 2 characters"],
  [["a", "b"], z.array(z.string()).max(1), "must have at most 1 entry"],
  ["c", z.enum(["a", "b"]), 'must be one of "a", "b"'],
  ["c", z.literal("a"), 'must be "a"'],
  [{ a: 1 }, z.strictObject({}), 'has no "a"'],
  ["nowhere", z.url(), "must be a URL"],
  [[], z.record(z.string(), z.string()), "must be an object"],
  [true, z.union([z.string(), z.number()]), "has none of the forms that are accepted"],
  ["b", z.string().regex(/a/, "is without an a"), "is without an a"],
])("the value %j is refused in our own words", (value, schema, text) => {
  expect(schema.safeParse(value, { error: issueText }).error?.issues.map(({ message }) => message)).toEqual([text]);
});
