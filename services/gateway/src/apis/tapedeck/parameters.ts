import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import { operationKinds } from "@tapedeck/shared/events/kinds";
import { outcomeNames } from "@tapedeck/shared/events/names";
import { type FilterField, parseFilter } from "@tapedeck/shared/filter/filter";
import { largestPage } from "@tapedeck/shared/largest-page";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";
import { historyKinds } from "./list-request.ts";
import {
  after,
  flag,
  many,
  one,
  position,
  positionOrTime,
  speed,
  text,
  time,
  until,
  whole,
} from "./parameter-schemas.ts";
import type { StatsKind } from "./schemas/stats.ts";

// The parameters of the HTTP API. These schemas check each request, and the API's description is made of them.

/** Query parameters as they arrive: every value of a repeated one. */
export type RawParameters = Readonly<Record<string, string | readonly string[]>>;

const outcomes = Object.values(outcomeNames).filter((name) => name !== "");

/** `filterOf` checks the values of a filter, the same for every transport. */
const filterValue = (example: string, meta: Readonly<Record<string, unknown>> = {}) => text(example).min(1).meta(meta);

const ofSources = {
  developer: many(filterValue("alice"), "Only these developers."),
  project: many(filterValue("shop"), "Only these projects."),
  upstream: many(filterValue("skaffold", { examples: upstreamNames }), "Only these kinds of upstream."),
  source: many(
    filterValue("alice/shop"),
    "Only these sources: `developer/project`, `developer/project/upstream`, or in full with the workspace before it.",
  ),
};
const session = many(filterValue("01M7XB1CJJ74KGYJT57DM4N80H"), "Only these sessions.");
const subject = many(filterValue("web"), "Only these subjects: an artifact, a resource, a pod, a job …");
const outcome = many(filterValue("failed", { enum: outcomes }), "Only these outcomes.");
const filter = {
  ...ofSources,
  session,
  kind: many(filterValue("build.*"), "Only these kinds: `noun.verb`, `noun.*` or `*.verb`."),
  subject,
  outcome,
};

const minPosition = one(
  position,
  "The answer reflects at least this position: read your own write. After 2 s the answer is `not_ready`.",
);
const at = one(positionOrTime, "The state at a position, or at a time (everything that was recorded up to it).");
const paging = {
  limit: whole(largestPage, "At most this many items; 100 by default."),
  page: one(z.string(), "The `nextPage` of an earlier answer."),
  at,
  min_position: minPosition,
};
const between = {
  from: one(time, "Only what began at this time or later."),
  to: one(time, "Only what began before this time."),
};
const original = flag("Includes the upstream's own message in each event, base64.");

/** The filter that every list and every kind of statistics has. */
const ofLists = {
  ...ofSources,
  session,
  artifact: many(
    filterValue("web"),
    "Only these artifacts: sources and sessions that built one, loops in which one was built and what else ran in them.",
  ),
  label: many(
    text("branch=main").regex(/^[^=]+=/, "is not name=value"),
    "Only with these labels, `name=value`: all of them must match.",
  ),
};

/** What every kind of statistics can be grouped by, besides labels. */
const ofAll = ["developer", "project", "source", "hour", "day", "week", "time"];

const byLabel = /^label\../;

export function statsParameters({ columns, hasLoops }: StatsKind) {
  const names = [...Object.keys(columns), ...ofAll, ...(hasLoops ? ["loop"] : [])];
  const name = z.string().refine((group) => names.includes(group) || byLabel.test(group), {
    error: `is not one of ${names.join(", ")}, label.<name>`,
  });
  const { artifact, ...others } = ofLists;
  const list = [...names, "label.branch"].map((one) => `\`${one}\``).join(", ");
  return z.strictObject({
    group: z
      .preprocess(
        (list) => (Array.isArray(list) ? list.flatMap((value) => String(value).split(",")).filter(Boolean) : list),
        z.array(name),
      )
      .optional()
      .describe(
        `One row for each value of these, repeated or separated by commas: ${list}. An hour is identified by its start in UTC, a week by its Monday. \`loop\` and \`time\` give the rows that a number is made of.`,
      ),
    zone: one(text("Europe/Berlin"), "Time zone of hours, days and weeks; UTC by default."),
    ...others,
    ...between,
    min_position: minPosition,
    // Typed as if every kind had it. It is never set for the others, which refuse it.
    ...((hasLoops ? { artifact } : {}) as { artifact: typeof artifact }),
  });
}

export type StatsParameters = z.infer<ReturnType<typeof statsParameters>>;

/** Runners and loops are numbered with 32 bits. */
const maxNumber = 2 ** 32 - 1;

const aSide =
  "What to compare: a loop as `<session>.<runner>.<loop>`, a session's id, or a source as `developer/project`, with " +
  "`/upstream`, or in full. A session or a source may be followed by `@` and a position or time, and stands for its newest " +
  "finished loop.";

export const parameters = {
  sources: z.strictObject({ ...ofLists, ...paging }),
  sessions: z.strictObject({ ...ofLists, ...between, ...paging }),
  operations: z.strictObject({
    ...ofLists,
    kind: many(z.enum(operationKinds, `is not one of ${operationKinds.join(", ")}`), "Only these kinds."),
    subject,
    outcome,
    runner: whole(maxNumber, "Only those of this runner, of the one `session`.", 0),
    loop: whole(
      maxNumber,
      "Only this loop of the `runner`, and what ran in it; with kind=loop alone, those of any runner.",
      0,
    ),
    ...between,
    per_source: whole(largestPage, "At most this many newest matches per source."),
    ...paging,
  }),
  search: z.strictObject({
    q: one(
      text("no such file"),
      "Found anywhere in causes, artifacts, labels, names and the output of failed steps (all output with " +
        "`query.textRows`). Of ASCII letters the case does not matter. Three letters or digits in a row at least. Without it: all.",
    ),
    ...ofLists,
    kind: many(z.enum(historyKinds, `is not one of ${historyKinds.join(", ")}`), "Only these kinds."),
    outcome,
    reason: many(text("compile error"), "Only these classes of causes."),
    ...between,
    limit: paging.limit,
    page: paging.page,
    min_position: minPosition,
  }),
  compare: z.strictObject({
    left: one(text("alice/shop"), `${aSide} Required when there are several sources.`),
    right: one(
      text("bob/shop"),
      `The other side, likewise. Without it: the last good loop before the one on the left, which is then the newest that failed.`,
    ),
    at: one(positionOrTime, "A position or time: nothing that was recorded later is in the answer."),
    min_position: minPosition,
  }),
  status: z.strictObject({}),
  state: z.strictObject({
    source: one(
      text("alice/shop"),
      "`developer/project`, with `/upstream`, or in full. Required when there are several sources.",
    ),
    session: one(
      text("01M7XB1CJJ74KGYJT57DM4N80H"),
      "The state of this session; by default of the newest one, running or ended.",
    ),
    at,
    min_position: minPosition,
  }),
  events: z.strictObject({
    ...filter,
    after: after("start", "Where to begin:"),
    until,
    limit: whole(largestPage, "At most this many events in a page; 100 by default. Not with NDJSON."),
    last: whole(largestPage, "This many newest events instead, ascending. Not with NDJSON."),
    original,
    speed: speed.describe(`With NDJSON only. ${speed.description}`),
  }),
  stream: z.strictObject({
    ...filter,
    after: after("now", "Where to begin:"),
    until: until.describe(
      `${until.description} The stream ends there, with \`complete\`; without it, it has no end. With a time in the ` +
        "future the stream is live until then.",
    ),
    state: flag(
      "Begins with the state of the one source that the filter names, then the events after it: with `after=now` the " +
        "state now, otherwise the state there (not with `start`).",
    ),
    original,
    speed,
  }),
};

export type ParametersOf<Name extends keyof typeof parameters> = z.infer<(typeof parameters)[Name]>;

/**
 * The parameters of a request, as the schema has them.
 * @throws TapedeckError invalid_argument for the first parameter that is wrong or unknown
 */
export function readParameters<Schema extends z.ZodObject>(schema: Schema, raw: RawParameters): z.infer<Schema> {
  const values = Object.entries(raw).map(([name, value]) => [name, Array.isArray(value) ? value : [value]]);
  const result = schema.safeParse(Object.fromEntries(values), { reportInput: true, error: issueText });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue?.code === "unrecognized_keys") {
    const [field = ""] = issue.keys;
    const known = Object.keys(schema.shape);
    const which = known.length === 0 ? "it takes none" : `the known ones are ${known.join(", ")}`;
    throw invalidArgument(`there is no parameter "${field}" here: ${which}`, field);
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

/** The filter of some parameters, parsed as on streams so that it means the same. */
export function filterOf(parameters: FilterParameters) {
  const fields = Object.entries(fieldOf) as [keyof typeof fieldOf, FilterField][];
  return parseFilter(Object.fromEntries(fields.map(([name, field]) => [field, parameters[name]])));
}
