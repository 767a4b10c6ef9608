import type { Outcome } from "./event.ts";
import type { KindPattern } from "./kinds.ts";

/** Values of a field are ORed, fields ANDed. An absent field matches everything. */
export type SourceFilter = {
  readonly developers?: readonly string[];
  readonly projects?: readonly string[];
  /** "skaffold", "vagrant", "rkt" */
  readonly upstreams?: readonly string[];
  /** "developer/project", "developer/project/upstream", or the full name */
  readonly sources?: readonly string[];
};

/** The filter of every list and of statistics. */
export type ListFilter = SourceFilter & {
  readonly sessions?: readonly string[];
  /** All of them must match. A source matches by one of its sessions. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Sources and sessions that built one, loops in which one was built, and what else ran in them. */
  readonly artifacts?: readonly string[];
};

export type Filter<Pattern extends string = string> = SourceFilter & {
  readonly sessions?: readonly string[];
  /** `build.failed`, `build.*`, `*.failed` */
  readonly kinds?: readonly (Pattern | KindPattern)[];
  /** Artifacts, resources, pods, jobs … */
  readonly subjects?: readonly string[];
  readonly outcomes?: readonly Outcome[];
};

const fields = ["developers", "projects", "upstreams", "sources", "sessions", "kinds", "subjects", "outcomes"] as const;

/** The filter in a request's options, as it is sent over a WebSocket. */
export function filterOf(options: Filter): Filter {
  return Object.fromEntries(fields.flatMap((field) => (options[field] === undefined ? [] : [[field, options[field]]])));
}

/** An RFC 3339 time, or a position. */
export type PositionOrTime = string | Date;

export function positionOrTimeText(value: PositionOrTime): string {
  return typeof value === "string" ? value : value.toISOString();
}
