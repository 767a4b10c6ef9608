import { parseWhen } from "@tapedeck/shared/filter/time";
import { z } from "zod";

// The kinds of query parameters. Their descriptions are part of the API's description.

/** The last value of a parameter that was repeated. */
const last = (values: unknown) => (Array.isArray(values) ? values.at(-1) : values);

/** A parameter with one value. */
export function one<Schema extends z.ZodType>(schema: Schema, description: string) {
  return z.preprocess(last, schema).optional().describe(description);
}

/** A parameter that may be repeated. */
export function many<Schema extends z.ZodType>(schema: Schema, description: string) {
  return z.array(schema).optional().describe(description);
}

export const text = (example: string) => z.string().meta({ examples: [example] });

/** A whole number from `least` to `max`. */
export function whole(max: number, description: string, least = 1) {
  const wrong = `is not a whole number from ${least} to ${max}`;
  const parse = (input: unknown) => {
    const value = last(input);
    return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  };
  return z.preprocess(parse, z.int(wrong).min(least, wrong).max(max, wrong)).optional().describe(description);
}

export function flag(description: string) {
  const parse = (input: unknown) => {
    const value = last(input);
    return value === "true" ? true : value === "false" ? false : value;
  };
  return z.preprocess(parse, z.boolean("is not true or false")).optional().describe(description);
}

/** A point in the log. In a URL the "+" of a time's zone arrives as a space, which is accepted. */
export function when(forms: readonly ("position" | "time" | "start" | "now")[], wrong: string) {
  const isForm = (value: string) => forms.some((form) => form === parseWhen(value)?.type);
  return z.string().refine(isForm, wrong);
}

const aTime = "2026-01-31T12:00:00Z";
const aPosition = "383600-t3k9x2";
const neither = `is neither a position (such as ${aPosition}) nor a time (${aTime})`;

export const time = when(["time"], `is not a time such as ${aTime}`).meta({ format: "date-time", examples: [aTime] });
export const positionOrTime = when(["position", "time"], neither).meta({ examples: [aPosition, aTime] });
export const position = when(["position"], `is not a position (such as ${aPosition})`).meta({ examples: [aPosition] });

export const after = (start: "start" | "now", what: string) =>
  one(
    when(["start", "now", "position", "time"], `${neither}, nor start or now`).meta({ examples: ["start"] }),
    `${what} \`start\` (before the first stored event), \`now\`, after a position, or from a time of recording on. ` +
      `Without it: \`${start}\`.`,
  );

export const until = one(
  when(["now", "position", "time"], `${neither}, nor now`).meta({ examples: ["now"] }),
  "The end: a position or a time of recording, inclusive, or `now`.",
);

/** The speed on every transport. */
export const speedValue = z.union(
  [z.literal("max"), z.number().gt(0).max(1_000)],
  "is not max, nor a number above 0 and up to 1000 such as 1, 10 or 0.5",
);

export const speed = z
  .preprocess((input) => {
    const value = last(input);
    return typeof value === "string" && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  }, speedValue)
  .optional()
  .describe(
    "How fast history is played: `1` keeps the gaps between the events' recorded times, `10` is ten times as fast, `max` " +
      "(the default) leaves them out. Gaps are kept however long they are. Events after `caught_up` come as they happen. " +
      "A reader that falls behind gets overdue events at once.",
  );
