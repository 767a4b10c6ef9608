import type { Parameters } from "./api.ts";

/** What narrows a list or statistics on a command line: see `addListFilter`. */
export type ListFilter = {
  readonly source?: readonly string[] | undefined;
  readonly developer?: readonly string[] | undefined;
  readonly project?: readonly string[] | undefined;
  readonly upstream?: readonly string[] | undefined;
  readonly session?: readonly string[] | undefined;
  readonly label?: Readonly<Record<string, string>> | undefined;
  readonly artifact?: readonly string[] | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
};

/** The same for the API. `sources`: what the names of sources stand for. */
export function listParameters(filter: ListFilter, sources: readonly string[] | undefined): Parameters {
  const { developer, project, upstream, session, label, artifact, since: from, until: to } = filter;
  const labels = label && Object.entries(label).map(([name, value]) => `${name}=${value}`);
  return { source: sources, developer, project, upstream, session, label: labels, artifact, from, to };
}

/** Whether nothing is left out. */
export function isAll(filter: ListFilter): boolean {
  return Object.values(listParameters(filter, filter.source)).every((value) => value === undefined);
}
