import type { Filter } from "@tapedeck/client";
import type { Parameters } from "./api.ts";

/** What of a filter stands on a command line. */
export type FilterOptions = {
  readonly source?: readonly string[] | undefined;
  readonly developer?: readonly string[] | undefined;
  readonly project?: readonly string[] | undefined;
  readonly session?: readonly string[] | undefined;
  readonly kind?: readonly string[] | undefined;
  readonly subject?: readonly string[] | undefined;
  /** Artifacts are subjects. */
  readonly artifact?: readonly string[] | undefined;
  readonly outcome?: readonly string[] | undefined;
};

/** Does not check the values: the gateway reports invalid ones. */
export function filterOf(options: FilterOptions): Filter {
  const { source, developer, project, session, kind, subject, artifact, outcome } = options;
  const subjects = subject === undefined ? artifact : [...subject, ...(artifact ?? [])];
  const fields = { sources: source, developers: developer, projects: project, sessions: session, subjects };
  return Object.fromEntries(
    Object.entries({ ...fields, kinds: kind, outcomes: outcome }).flatMap(([field, values]) =>
      values === undefined ? [] : [[field, values] as const],
    ),
  ) as Filter;
}

/** Fields of a filter are plural, parameters of a URL singular. */
export function parametersOf(filter: Filter): Parameters {
  return Object.fromEntries(Object.entries(filter).map(([field, values]) => [field.slice(0, -1), values]));
}
