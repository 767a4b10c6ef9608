import type { z } from "zod";
import { ownValue } from "../own-value.ts";

/**
 * What is wrong with a value, in the words of this product, to be written after the value's name: "must be at most 50". A message
 * that a schema has of its own stays. Used as the `error` of a parse.
 */
export function issueText(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case "too_small":
      return boundText(issue.origin, issue.inclusive === false ? "above" : "at least", issue.minimum);
    case "too_big":
      return boundText(issue.origin, issue.inclusive === false ? "below" : "at most", issue.maximum);
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of "}${listOf(issue.values)}`;
    case "unrecognized_keys":
      return `has no ${listOf(issue.keys)}`;
    case "invalid_format":
      return `must be ${formatNames[issue.format] ?? `of the form ${issue.pattern ?? issue.format}`}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    default:
      return "has none of the forms that are accepted";
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

const formatNames: Readonly<Record<string, string>> = {
  url: "a URL",
  datetime: "a time such as 2026-01-31T12:00:00Z",
};

const nouns: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
};

/** "must be at most 50", "must have at most 20 entries", "must not be empty" */
function boundText(origin: string, how: string, bound: number | bigint): string {
  const noun = ownValue(nouns, origin);
  if (noun === undefined) return `must be ${how} ${bound}`;
  if (how === "at least" && Number(bound) === 1) return "must not be empty";
  return `must have ${how} ${bound} ${noun[Number(bound) === 1 ? 0 : 1]}`;
}

function listOf(values: readonly unknown[]): string {
  return values.map((value) => (typeof value === "string" ? JSON.stringify(value) : String(value))).join(", ");
}
