import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { operationKinds } from "@tapedeck/shared/events/kinds";
import { type Filter, type FilterField, maxValues, parseFilter } from "@tapedeck/shared/filter/filter";
import type { CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { refuseAt } from "../session-scope.ts";

/** The parameters of a list, on any transport. */
export type ListParameters = {
  /** A result of `parseFilter`, as on streams, so that it means the same. */
  readonly filter: Omit<Filter, "kinds">;
  /** For operations; checked by `operationKind`. */
  readonly kinds?: readonly string[] | undefined;
  /** All must match. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** What built, is, or ran beside one of them. */
  readonly artifacts?: readonly string[] | undefined;
  /** For operations: those of one runner or loop of the one session that is asked for, or all loops of a number. */
  readonly runner?: number | undefined;
  readonly loop?: number | undefined;
  /** Sessions and operations started in [from, to). */
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
  /** For a search: what is found anywhere in the items; empty: all of them. */
  readonly text?: string | undefined;
  /** For a search: classes of causes. */
  readonly reasons?: readonly string[] | undefined;
  /** For operations: at most this many newest of each source; 0: all. */
  readonly perSource?: number | undefined;
  /** At most `largestPage`; 0: the default, which is 100. */
  readonly limit?: number | undefined;
  /** The next page of an earlier answer. */
  readonly page?: string | undefined;
  /** Position or time of the moment that the list is read at. */
  readonly at?: string | undefined;
};

const ofSessions = ["developers", "projects", "upstreams", "sources", "sessions"] as const;

/** The fields of a filter that each list has, besides labels and artifacts. */
export const listFields = {
  sources: ofSessions,
  sessions: ofSessions,
  operations: [...ofSessions, "kinds", "subjects", "outcomes"],
  search: [...ofSessions, "kinds", "outcomes"],
} as const satisfies Record<string, readonly FilterField[]>;

export type ListName = keyof typeof listFields;

/** Lists from query, newest first, as query answers them. Everything throws TapedeckError. */
export type Lists = {
  readonly sources: List<"listSources">;
  readonly sessions: List<"listSessions">;
  readonly operations: List<"listOperations">;
  readonly search: List<"search">;
};

type List<Method extends keyof Lister> = (
  context: ListContext,
  parameters: ListParameters,
) => ReturnType<Lister[Method]>;

/** `source`, `session` and `at` apply when the request has none of its own. */
export type ListContext = Pick<
  CallContext,
  "workspace" | "roles" | "developer" | "source" | "session" | "at" | "minPosition"
>;

export type Lister = Pick<QueryClient, "listSources" | "listSessions" | "listOperations" | "search">;

export function listsApi(query: Lister): Lists {
  return {
    sources: (context, parameters) => query.listSources(listRequest(context, parameters)),
    sessions: (context, parameters) => query.listSessions(listRequest(context, parameters)),
    operations: (context, parameters) => query.listOperations(listRequest(context, parameters)),
    async search(context, parameters) {
      refuseAt(context, "a search has no `at`: use `to` for what began before a time");
      const { text = "", reasons = [] } = parameters;
      return query.search({ filter: listRequest(context, parameters), text, reasons: [...reasons] });
    },
  };
}

/** What a search lists. */
export const historyKinds = ["loop", "command", "job", "pod", "session"] as const;

/** @throws TapedeckError invalid_argument naming the field, when the text is not a kind of what a search lists */
export function historyKind(kind: string, field: string): string {
  if ((historyKinds as readonly string[]).includes(kind)) return kind;
  throw invalidArgument(`kind "${kind}" is not one of ${historyKinds.join(", ")}`, field);
}

const kindsKnown: ReadonlySet<string> = new Set(operationKinds);

/** @throws TapedeckError invalid_argument naming the field, when the text is not a kind of operation */
export function operationKind(kind: string, field: string): string {
  if (kindsKnown.has(kind)) return kind;
  throw invalidArgument(`kind "${kind}" is not one of ${operationKinds.join(", ")}`, field);
}

/**
 * What query is asked for.
 * @throws TapedeckError invalid_argument for a runner that is not of one session, a loop without its runner, and for too many artifacts
 */
export function listRequest(context: ListContext, parameters: ListParameters): ListRequest {
  const {
    filter,
    kinds = [],
    labels = {},
    artifacts = [],
    from,
    to,
    runner,
    loop,
    perSource = 0,
    limit = 0,
    page = "",
    at = context.at ?? "",
  } = parameters;
  const { sources, sessions } = placed(filter, context);
  checkNumbers(parameters, sessions);
  if (artifacts.length > maxValues) throw invalidArgument(`more than ${maxValues} artifacts`, "artifact");
  return {
    workspace: context.workspace,
    developers: [...(filter.developers ?? [])],
    projects: [...(filter.projects ?? [])],
    upstreams: [...(filter.upstreams ?? [])],
    sources: [...(sources ?? [])],
    sessions: [...(sessions ?? [])],
    kinds: [...kinds],
    subjects: [...(filter.subjects ?? [])],
    outcomes: [...(filter.outcomes ?? [])],
    labels: { ...labels },
    artifacts: [...artifacts],
    from,
    to,
    per_source: perSource,
    limit,
    page,
    at,
    min_position: context.minPosition ?? "",
    runner,
    loop,
  };
}

/** Each session numbers its runners, and each runner its loops. A list of loops alone may be one of a number in all of them. */
function checkNumbers({ runner, loop, kinds = [] }: ListParameters, sessions: readonly string[] = []): void {
  const isOfLoops = kinds.length === 1 && kinds[0] === "loop";
  if (loop !== undefined && runner === undefined && !isOfLoops)
    throw invalidArgument("a loop belongs to a runner: set the runner, too", "runner");
  if (runner !== undefined && sessions.length !== 1)
    throw invalidArgument("a runner belongs to a session: set exactly one session, too", "session");
}

/** A filter with the source and session of the call's context, unless the filter has its own. */
export function placed(filter: Filter, { source, session }: Pick<CallContext, "source" | "session">): Filter {
  const { sources, developers, projects } = filter;
  const isOpen = (sources ?? developers ?? projects) === undefined;
  return {
    ...(isOpen && source !== undefined && parseFilter({ sources: [source] })),
    ...(session !== undefined && { sessions: [session] }),
    ...filter,
  };
}
