import type { Parameters } from "./api.ts";

/** What narrows a list or statistics on a command line: see `addListFilter`. */
export type ListFilter = {
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly label?: Readonly<Record<string, string>>;
  readonly artifact?: readonly string[];
  readonly since?: string;
  readonly until?: string;
};

/** The same for the API. `sources`: what the names of sources stand for. */
export function listParameters(filter: ListFilter, sources: readonly string[] | undefined): Parameters {
  const { developer, project, label, artifact, since: from, until: to } = filter;
  const labels = label && Object.entries(label).map(([name, value]) => `${name}=${value}`);
  return { source: sources, developer, project, label: labels, artifact, from, to };
}

/** Whether nothing is left out. */
export function isAll(filter: ListFilter): boolean {
  return Object.values(listParameters(filter, filter.source)).every((value) => value === undefined);
}
