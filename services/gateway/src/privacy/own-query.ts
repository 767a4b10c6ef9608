import type { BuildStatsRequest, ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { QueryClient } from "../query-client.ts";
import { isOf, refuseOthers } from "./own-developer.ts";

/**
 * Query's answers about one developer, and the team's statistics. What asks it, asks about a workspace in which nobody else
 * has recorded anything. Its type names every question, so that a new one is not answered before it is decided here.
 */
export function ownQuery(query: QueryClient, developer: string): QueryClient {
  const own = <Request extends Partial<ListRequest>>(request: Request) => {
    refuseOthers(developer, request);
    return { ...request, developers: [developer] };
  };
  return {
    readState: async (request) => {
      refuseOthers(developer, { sources: [request.source ?? ""] });
      return query.readState(request);
    },
    listSources: async (request) => query.listSources(own(request)),
    listSessions: async (request) => query.listSessions(own(request)),
    listOperations: async (request) => query.listOperations(own(request)),
    search: async (request) => query.search({ ...request, filter: ownList(request.filter, own) }),
    findEvents: async (request) => query.findEvents({ ...request, filter: ownList(request.filter, own) }),
    buildStats: async (request) => query.buildStats(isOfTeam(request) ? request : own(request)),
    stats: async (about, of) => query.stats(about, isOfTeam(of) ? of : own(of)),
    // The login shows the developer's rows, and sums of the team.
    runSql: async (request) => query.runSql({ ...request, developer }),
    exportTables: (request, signal) => query.exportTables({ ...request, developer }, signal),
    position: (workspace) => query.position(workspace),
    setAside: async (workspace) => {
      const { sources } = await query.setAside(workspace);
      return { sources: sources.filter(({ source }) => isOf(developer, source)) };
    },
    // For admins, who ask another client.
    workspaces: async () => ({ items: [] }),
    // The other one is open for other callers.
    [Symbol.asyncDispose]: async () => {},
  };
}

function ownList(filter: ListRequest | undefined, own: (request: ListRequest) => ListRequest): ListRequest {
  if (filter === undefined) throw new Error("a question without a filter has no workspace");
  return own(filter);
}

/** The columns of statistics that hold no name, and no text of somebody's output. */
const teamColumns: ReadonlySet<string> = new Set([
  ...["hour", "day", "week", "project", "artifact", "phase", "reason", "errorCode"],
  ...["command", "machine", "box", "provider"],
]);

/**
 * Whether a field of a request narrows the figures to what can be somebody's: a source, a session or a label says whose it
 * is. The type names every field, so that a new one is not the team's before it is decided here.
 */
const saysWhose: Readonly<Record<keyof Omit<BuildStatsRequest, "group" | "_unknownFields">, boolean>> = {
  workspace: false,
  from: false,
  to: false,
  zone: false,
  min_position: false,
  projects: false,
  artifacts: false,
  upstreams: false,
  developers: true,
  sources: true,
  sessions: true,
  labels: true,
};

/** Everything else is the developer's own; a loop or a line of output can say whose it is, too. */
function isOfTeam({ group = [], ...request }: Partial<BuildStatsRequest>): boolean {
  const isNarrowed = Object.entries(saysWhose).some(
    ([name, says]) => says && Object.keys(request[name as keyof typeof saysWhose] ?? {}).length > 0,
  );
  return !isNarrowed && group.every((name) => teamColumns.has(name));
}
