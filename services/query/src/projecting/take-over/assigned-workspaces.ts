import {
  defaultQuery,
  type QueryMap,
  queriesOf,
  type WorkspaceQueries,
  watchQueryMap,
} from "@tapedeck/shared/log/queries/query-map";
import { matchesWorkspace } from "@tapedeck/shared/log/workspaces/log-settings";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import type { NatsConnection } from "nats";

/** What a query has to do with a workspace. */
export type Assignment =
  /** It is the one that answers. */
  | "own"
  /** It is to answer: it projects the workspace, and says so in the map when its tables have caught up. */
  | "taking"
  /** Another one answers: its rows go when nobody reads them any more. */
  | "leaving"
  | "none";

/** This query, by its settings. */
export type AssignedQuery = {
  /** The address by which gateways reach it, or `defaultQuery`. */
  readonly name: string;
  /** Names and patterns (`*` stands for any characters) of the workspaces that another query than the default one takes over. */
  readonly patterns: readonly string[];
};

/** The default query has what no other one has, and takes back what another one gives up. Any other takes what it is set to. */
export function assignmentOf(query: AssignedQuery, workspace: string, entry: WorkspaceQueries): Assignment {
  const { at, also, offered } = entry;
  if (at === query.name) return "own";
  const isFree = offered || (at === defaultQuery && query.name !== defaultQuery);
  if (isFree && wants(query, workspace)) return "taking";
  return also.includes(query.name) ? "leaving" : "none";
}

export function wants({ name, patterns }: AssignedQuery, workspace: string): boolean {
  return name === defaultQuery || patterns.some((pattern) => matchesWorkspace(pattern, workspace));
}

/** The workspaces of this query, by its settings and the map of the queries. */
export class AssignedWorkspaces {
  readonly query: AssignedQuery;
  readonly #changed = new Notifier();
  /** Those to be taken over whose projection has begun. */
  readonly #begun = new Set<string>();
  /** Those whose rows stay although another query answers for them: a sentence says why. */
  readonly #kept = new Map<string, string>();
  #map: QueryMap = new Map();
  #isKnown = false;

  constructor(query: AssignedQuery) {
    this.query = query;
  }

  /**
   * Follows the map, until the result is disposed. Rejects while the map could never be read: nothing may be projected without
   * it.
   */
  async listen(nats: NatsConnection): Promise<Disposable> {
    const watch = watchQueryMap(nats, (map) => this.found(map));
    await watch.loaded.catch((error: unknown) => {
      if (this.#isKnown) return;
      watch[Symbol.dispose]();
      throw error;
    });
    return watch;
  }

  found(map: QueryMap): void {
    this.#map = map;
    this.#isKnown = true;
    for (const workspace of this.#begun) if (this.of(workspace) !== "taking") this.#begun.delete(workspace);
    this.#changed.ring();
  }

  /** Resolves when the map has changed. */
  changed(): Promise<void> {
    return this.#changed.next();
  }

  /** The workspaces that have an entry in the map. */
  entries(): QueryMap {
    return this.#map;
  }

  of(workspace: string): Assignment {
    return assignmentOf(this.query, workspace, queriesOf(this.#map, workspace));
  }

  /** From now on a workspace that is to be taken over is projected. */
  begin(workspace: string): void {
    this.#begun.add(workspace);
  }

  /** `hasRows`: rows of a workspace that another query answers for follow its log until they are deleted. */
  isProjected(workspace: string, hasRows: boolean): boolean {
    const assignment = this.of(workspace);
    if (assignment === "taking") return this.#begun.has(workspace) || hasRows;
    return assignment === "own" || (assignment === "leaving" && hasRows);
  }

  /** Why nothing is answered about a workspace, a sentence: this query's tables do not have it. */
  refusalOf(workspace: string): string | undefined {
    const { at, also } = queriesOf(this.#map, workspace);
    const { name } = this.query;
    if (at === name || also.includes(name)) return undefined;
    return `${queryNamed(at)} has the workspace ${workspace}, and this one does not`;
  }

  /** The rows of a workspace stay; `why` is a sentence, undefined: they do not. */
  keeps(workspace: string, why: string | undefined): void {
    if (why === undefined) this.#kept.delete(workspace);
    else this.#kept.set(workspace, why);
  }

  /** The workspaces that do not change hands although they are to: a sentence for each. */
  conflicts(): readonly string[] {
    for (const workspace of this.#kept.keys()) if (this.of(workspace) !== "leaving") this.#kept.delete(workspace);
    return [...this.#kept.values(), ...this.#notTaken()];
  }

  /** Those that this query is set to take over, and that another one has. */
  #notTaken(): readonly string[] {
    const { name, patterns } = this.query;
    if (name === defaultQuery) return [];
    return [...this.#map].flatMap(([workspace, { at }]) =>
      at === defaultQuery ||
      !wants(this.query, workspace) ||
      this.of(workspace) === "own" ||
      this.of(workspace) === "taking"
        ? []
        : [
            `workspace ${workspace} is not taken over, although query.workspaces (${patterns.join(", ")}) has it: ${queryNamed(at)} has it, so take it out of query.workspaces there, or here`,
          ],
    );
  }
}

export function queryNamed(name: string): string {
  return name === defaultQuery ? "the default query" : `the query at ${name}`;
}
