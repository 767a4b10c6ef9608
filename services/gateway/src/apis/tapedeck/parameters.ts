import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { outcomeNames } from "@tapedeck/shared/events/names";
import { type FilterField, parseFilter } from "@tapedeck/shared/filter/filter";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";
import { largestLimit, operationKinds } from "./list-request.ts";

// What the HTTP API can be asked for. These schemas check each request, and they are what the API's description says.

/** Query parameters as they come: every value of a repeated one. */
export type Given = Readonly<Record<string, string | readonly string[]>>;

/** Of a parameter that is there once, the last value counts. */
const last = (values: unknown) => (Array.isArray(values) ? values.at(-1) : values);

function one<Schema extends z.ZodType>(schema: Schema, description: string) {
  return z.preprocess(last, schema).optional().describe(description);
}

function many<Schema extends z.ZodType>(schema: Schema, description: string) {
  return z.array(schema).optional().describe(description);
}

const text = (example: string) => z.string().meta({ examples: [example] });

function whole(most: number, description: string) {
  const wrong = `is not a whole number from 1 to ${most}`;
  const read = (given: unknown) => {
    const value = last(given);
    return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  };
  return z.preprocess(read, z.int(wrong).min(1, wrong).max(most, wrong)).optional().describe(description);
}

function flag(description: string) {
  const read = (given: unknown) => {
    const value = last(given);
    return value === "true" ? true : value === "false" ? false : value;
  };
  return z.preprocess(read, z.boolean("is not true or false")).optional().describe(description);
}

/** A point in the log, of these forms; in a URL the "+" of a time's zone arrives as a space, and is taken for it. */
function when(forms: readonly ("position" | "time" | "start" | "now")[], wrong: string) {
  const isForm = (value: string) => forms.some((form) => form === parseWhen(value)?.type);
  return z.string().refine(isForm, wrong);
}

const aTime = "2026-01-31T12:00:00Z";
const aPlace = `a position (such as t3k9x2-10482) nor a time (${aTime})`;
const time = when(["time"], `is not a time such as ${aTime}`).meta({ format: "date-time", examples: [aTime] });
const moment = when(["position", "time"], `is neither ${aPlace}`).meta({ examples: ["t3k9x2-10482", aTime] });
const position = when(["position"], "is not a position (such as t3k9x2-10482)").meta({ examples: ["t3k9x2-10482"] });
const outcomes = Object.values(outcomeNames).filter((name) => name !== "");

/** Values of a filter are checked by `filterOf`, the same for every transport. */
const filterValue = (example: string, meta: Readonly<Record<string, unknown>> = {}) => text(example).min(1).meta(meta);

const ofSources = {
  developer: many(filterValue("alice"), "Of these developers."),
  project: many(filterValue("shop"), "Of these projects."),
  upstream: many(filterValue("skaffold", { examples: upstreamNames }), "Of these kinds of upstream."),
  source: many(
    filterValue("alice/shop"),
    "Of these sources: `developer/project`, `developer/project/upstream`, or in full with the workspace before it.",
  ),
};
const session = many(filterValue("01M7XB1CJJ74KGYJT57DM4N80H"), "Of these sessions.");
const subject = many(filterValue("web"), "About these: an artifact, a resource, a pod, a job …");
const outcome = many(filterValue("failed", { enum: outcomes }), "That ended so.");
const filter = {
  ...ofSources,
  session,
  kind: many(filterValue("build.*"), "Of these kinds: `noun.verb`, `noun.*` or `*.verb`."),
  subject,
  outcome,
};

const minPosition = one(
  position,
  "The answer reflects at least this position: read your own write. What takes longer than 2 s is `not_ready`.",
);
const paging = {
  limit: whole(largestLimit, "At most so many items; 100 where it is not said."),
  page: one(z.string(), "A former answer's `nextPage`."),
  at: one(moment, "As it stood then: a position, or a time (all that was recorded up to it)."),
  min_position: minPosition,
};
const between = {
  from: one(time, "That began at this time or later."),
  to: one(time, "That began before this time."),
};
const original = flag("With the upstream's own message in each event, base64.");
/** On every transport. */
export const speedValue = z.union(
  [z.literal("max"), z.number().gt(0).max(1_000)],
  "is not max, nor a number above 0 and up to 1000 such as 1, 10 or 0.5",
);
const speed = z
  .preprocess((given) => {
    const value = last(given);
    return typeof value === "string" && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  }, speedValue)
  .optional()
  .describe(
    "How fast history is played: `1` keeps the gaps between the events' recorded times, `10` is ten times as fast, `max` " +
      "(what holds where it is not said) leaves them out. Gaps are kept however long they are. What happens after " +
      "`caught_up` comes as it happens. A reader that was slower than the tape gets what is due at once.",
  );
const after = (start: "start" | "now", what: string) =>
  one(
    when(["start", "now", "position", "time"], `is neither ${aPlace}, nor start or now`).meta({ examples: ["start"] }),
    `${what} \`start\` (before the first event that is kept), \`now\`, after a position, or from a time of recording on. ` +
      `Without it: \`${start}\`.`,
  );
const until = one(
  when(["now", "position", "time"], `is neither ${aPlace}, nor now`).meta({ examples: ["now"] }),
  "The last to be given: a position or a time of recording, inclusive, or `now`.",
);

export const groups = ["artifact", "developer", "project", "source", "day"] as const;

export const parameters = {
  sources: z.strictObject({ ...ofSources, ...paging }),
  sessions: z.strictObject({
    ...ofSources,
    session,
    label: many(
      text("branch=main").regex(/^[^=]+=/, "is not name=value"),
      "With these labels, `name=value`: all of them must match.",
    ),
    ...between,
    ...paging,
  }),
  operations: z.strictObject({
    ...ofSources,
    session,
    kind: many(z.enum(operationKinds, `is not one of ${operationKinds.join(", ")}`), "Of these kinds."),
    subject,
    outcome,
    ...between,
    ...paging,
  }),
  buildStats: z.strictObject({
    group: z
      .preprocess(
        (given) => (Array.isArray(given) ? given.flatMap((value) => String(value).split(",")).filter(Boolean) : given),
        z.array(z.enum(groups, `is none of ${groups.join(", ")}`)),
      )
      .optional()
      .describe("One row for each value of these: repeated, or with commas. Days are those of UTC."),
    developer: ofSources.developer,
    project: ofSources.project,
    artifact: many(text("web"), "Of these artifacts."),
    ...between,
    min_position: minPosition,
  }),
  state: z.strictObject({
    source: one(
      text("alice/shop"),
      "`developer/project`, with `/upstream`, or in full. Needed where there are several sources.",
    ),
    session: one(text("01M7XB1CJJ74KGYJT57DM4N80H"), "Of this session; else of the newest one, running or ended."),
    at: one(moment, "As it stood then: a position, or a time (all that was recorded up to it)."),
    min_position: minPosition,
  }),
  events: z.strictObject({
    ...filter,
    after: after("start", "Where to begin:"),
    until,
    limit: whole(largestLimit, "At most so many events in a page; 100 where it is not said. Not with NDJSON."),
    last: whole(largestLimit, "The newest so many instead, ascending. Not with NDJSON."),
    original,
    speed: speed.describe(`With NDJSON only. ${speed.description}`),
  }),
  stream: z.strictObject({
    ...filter,
    after: after("now", "Where to begin:"),
    until: until.describe(
      `${until.description} It ends there, with \`complete\`; else it has no end. A time that is still to come is waited ` +
        "for: until then it is live.",
    ),
    state: flag(
      "First the state of the one source that the filter names, then the events after it: with `after=now` the state " +
        "now, else the state there (not with `start`).",
    ),
    original,
    speed,
  }),
};

export type Asked<Name extends keyof typeof parameters> = z.infer<(typeof parameters)[Name]>;

/**
 * The parameters of a request, as the schema has them.
 * @throws TapedeckError invalid_argument, with the first that is wrong or that the path does not know
 */
export function readParameters<Schema extends z.ZodObject>(schema: Schema, given: Given): z.infer<Schema> {
  const values = Object.entries(given).map(([name, value]) => [name, Array.isArray(value) ? value : [value]]);
  const result = schema.safeParse(Object.fromEntries(values), { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue?.code === "unrecognized_keys") {
    const [field = ""] = issue.keys;
    const message = `there is no parameter "${field}" here: known are ${Object.keys(schema.shape).join(", ")}`;
    throw invalidArgument(message, field);
  }
  const field = String(issue?.path[0]);
  throw invalidArgument(`${field} "${issue?.input}" ${issue?.message}`, field);
}

/** Query parameters that are filter fields: singular in URLs, plural in a filter. */
const fieldOf = {
  developer: "developers",
  project: "projects",
  upstream: "upstreams",
  source: "sources",
  session: "sessions",
  kind: "kinds",
  subject: "subjects",
  outcome: "outcomes",
} as const satisfies Record<string, FilterField>;

type FilterParameters = { readonly [Name in keyof typeof fieldOf]?: readonly string[] | undefined };

/** The filter that parameters make: the same as on streams, so that it means the same. */
export function filterOf(asked: FilterParameters) {
  const fields = Object.entries(fieldOf) as [keyof typeof fieldOf, FilterField][];
  return parseFilter(Object.fromEntries(fields.map(([name, field]) => [field, asked[name]])));
}
