import { invalidArgument, type TapedeckError } from "../errors/errors.ts";
import type { Event } from "../events/codec.ts";
import { kinds } from "../events/kinds.ts";
import { outcomeNames } from "../events/names.ts";
import { nearest } from "../nearest.ts";
import { namePart } from "../source.ts";

/**
 * The filter of a subscriber or a list (docs/api.md#one-filter): fields are ANDed, values in a field ORed; an absent
 * field matches anything. It means the same live, in history and in SQL.
 */
export type Filter = { readonly [Field in FilterField]?: readonly string[] };

/** The fields of a filter that hold lists of texts. */
export const filterFields = [
  "developers",
  "projects",
  "upstreams",
  "sources",
  "sessions",
  "kinds",
  "subjects",
  "outcomes",
] as const;

/** The name of a list in a filter. */
export type FilterField = (typeof filterFields)[number];

/** More values than this in one field are refused. */
export const maxValues = 100;

/** A filter from what a client wrote, `{"kinds": ["build.*"], …}`. Errors name the field. */
export function parseFilter(input: unknown): Filter {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw invalid("filter", "the filter is not an object of arrays");
  }
  const filter: Partial<Record<FilterField, readonly string[]>> = {};
  for (const [name, value] of Object.entries(input)) {
    const field = filterFields.find((known) => known === name);
    if (field === undefined) throw invalid(`filter.${name}`, `unknown: a filter has ${filterFields.join(", ")}`);
    if (value === undefined) continue;
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string" && entry !== "")) {
      throw invalid(`filter.${field}`, "not an array of non-empty strings");
    }
    if (value.length > maxValues) throw invalid(`filter.${field}`, `more than ${maxValues} values`);
    if (value.length > 0) filter[field] = value.map((entry: string) => normalized(field, entry));
  }
  return filter;
}

/** Whether an event passes a filter. */
export function matches(filter: Filter, event: Event): boolean {
  return (
    isOfPlace(filter, event) &&
    (filter.sources === undefined || filter.sources.some((source) => isSource(source, event.source))) &&
    has(filter.sessions, event.session) &&
    (filter.kinds === undefined || filter.kinds.some((pattern) => kindMatches(pattern, event.kind))) &&
    (filter.subjects === undefined || filter.subjects.some((subject) => isAbout(subject, event))) &&
    has(filter.outcomes, outcomeNames[event.outcome] ?? "")
  );
}

function isOfPlace({ developers, projects, upstreams }: Filter, { source }: Event): boolean {
  if (developers === undefined && projects === undefined && upstreams === undefined) return true;
  const [, developer = "", project = "", upstream = ""] = source.split("/");
  return has(developers, developer) && has(projects, project) && has(upstreams, upstream);
}

/** "build.failed", "build.*", "*.failed", "*". */
export function kindMatches(pattern: string, kind: string): boolean {
  if (pattern === "*" || pattern === kind) return true;
  const [noun = "", verb = ""] = pattern.split(".");
  const [ofKind = "", did = ""] = kind.split(".");
  return (noun === "*" || noun === ofKind) && (verb === "*" || verb === did);
}

function normalized(field: FilterField, value: string): string {
  switch (field) {
    case "developers":
    case "projects":
    case "upstreams":
      return namePart(value);
    case "sources": {
      const parts = value.split("/");
      if (parts.length < 2 || parts.length > 4) {
        throw invalid("filter.sources", `"${value}" is not developer/project, with /upstream, or in full`);
      }
      return parts.map(namePart).join("/");
    }
    case "kinds":
      if (!/^(\*|[a-z_]+|\*\.\*|[a-z_]+\.\*|\*\.[a-z_]+|[a-z_]+\.[a-z_]+)$/.test(value)) {
        throw invalid("filter.kinds", `"${value}" is not noun.verb, noun.* or *.verb`);
      }
      if (!kinds.some((kind) => kindMatches(value, kind))) {
        const near = nearest(value, patterns());
        throw invalid(
          "filter.kinds",
          `"${value}" matches no kind of event${near === undefined ? "" : `: did you mean ${near}?`}`,
        );
      }
      return value;
    case "outcomes":
      if (!outcomes.includes(value))
        throw invalid("filter.outcomes", `"${value}" is not one of ${outcomes.join(", ")}`);
      return value;
    default:
      return value;
  }
}

/** All kinds, and those by noun or verb alone. */
function patterns(): readonly string[] {
  const parts = kinds.map((kind) => kind.split("."));
  return [...kinds, ...new Set(parts.flatMap(([noun, verb]) => [`${noun}.*`, `*.${verb}`]))];
}

const outcomes = Object.values(outcomeNames).filter((name) => name !== "");

/** A command's events are those of its job, and its operation is called by its own name: both mean it. */
function isAbout(pattern: string, { subject, operation }: Event): boolean {
  return pattern === subject || pattern === operation?.subject;
}

/** `developer/project` and `developer/project/upstream` omit parts of a full name. */
function isSource(pattern: string, source: string): boolean {
  switch (pattern.split("/").length) {
    case 4:
      return pattern === source;
    case 3:
      return source.endsWith(`/${pattern}`);
    default:
      return source.includes(`/${pattern}/`);
  }
}

function has(values: readonly string[] | undefined, value: string): boolean {
  return values === undefined || values.includes(value);
}

function invalid(field: string, message: string): TapedeckError {
  return invalidArgument(`${field}: ${message}`, field);
}
