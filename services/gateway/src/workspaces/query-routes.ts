import { parsePosition } from "@tapedeck/shared/log/position";
import { defaultQuery, type QueryMap, queriesOf, watchQueryMap } from "@tapedeck/shared/log/queries/query-map";
import { delay } from "@tapedeck/shared/sync/delay";
import type { NatsConnection } from "nats";
import type { LogLink } from "../log-link.ts";
import type { QueryClient } from "../query-client.ts";

export type QueryRoutesOptions = {
  /** Address of the default query. */
  readonly address: string;
  readonly dial: (address: string) => QueryClient;
};

/** Where the map is. */
type QueryMapLink = Pick<LogLink, "opened"> & { readonly nats: () => { readonly connection: NatsConnection } };

/** The maximum time that requests wait for their workspace to change to its next query. Then the one before answers again. */
const moveMs = 500;
/** The time until the change is tried again. */
const retryMs = 1_000;
const pollMs = 20;
/** The timeout of a check of a query: everyone may request /readyz. */
const checkMs = 2_000;
/** The maximum number of workspaces that a warning names. */
const maxNamed = 3;

/** The query that this gateway asks about a workspace, and the number of its requests that are not answered yet. */
type Route = { at: string; requests: number; moving?: Promise<void> | undefined; failedAt?: number };

/**
 * Sends requests to the queries that the map names for their workspaces. A workspace changes to its next query between two
 * requests, when the tables of that query have all that the log has: what was in an answer is in the next one.
 */
export class QueryRoutes implements AsyncDisposable {
  readonly #options: QueryRoutesOptions;
  readonly #clients = new Map<string, QueryClient>();
  readonly #routes = new Map<string, Route>();
  #map: QueryMap = new Map();

  constructor(options: QueryRoutesOptions) {
    this.#options = options;
  }

  /** Follows the map until the signal; resolves when it was read. While NATS is away, the last known map is used. */
  async follow(link: QueryMapLink, signal: AbortSignal): Promise<void> {
    await link.opened;
    while (!signal.aborted) {
      try {
        const watch = watchQueryMap(link.nats().connection, (map) => {
          this.#map = map;
        });
        signal.addEventListener("abort", () => watch[Symbol.dispose]());
        return await watch.loaded.catch(() => {}); // the watch reads it again
      } catch {
        await delay(retryMs, signal);
      }
    }
  }

  /** Sends a request to the query of a workspace; empty: to the default one. */
  async send<T>(workspace: string, request: (query: QueryClient) => Promise<T>): Promise<T> {
    const { at } = queriesOf(this.#map, workspace);
    const route = this.#routes.get(workspace) ?? { at, requests: 0 };
    this.#routes.set(workspace, route);
    if (route.at !== at && !isRecent(route.failedAt)) {
      route.moving ??= this.#move(workspace, route, at).finally(() => {
        route.moving = undefined;
      });
      await route.moving;
    }
    route.requests++;
    try {
      return await request(this.#at(route.at));
    } finally {
      route.requests--;
    }
  }

  /** Sends a request to every query in the map, the default one first; `isOwn`: whether the query has a workspace. */
  async sendToAll<T>(
    request: (query: QueryClient, isOwn: (workspace: string) => boolean) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const answers = this.#names().map((name) =>
      request(this.#at(name), (workspace) => queriesOf(this.#map, workspace).at === name),
    );
    return (await Promise.all(answers)).flat();
  }

  /** Their addresses. */
  addresses(): readonly string[] {
    return this.#names().map((name) => this.#addressOf(name));
  }

  /** That of the query that has a workspace. */
  addressFor(workspace: string): string {
    return this.#addressOf(queriesOf(this.#map, workspace).at);
  }

  /** A sentence for each query, apart from the default one, that does not answer. */
  async problems(): Promise<readonly string[]> {
    const others = this.#names().filter((name) => name !== defaultQuery);
    const found = others.map(async (name) => {
      const answer = await soon(this.#at(name).position(), checkMs);
      return answer === undefined
        ? [`the query at ${name}, which has ${this.#workspacesOf(name)}, does not answer`]
        : [];
    });
    return (await Promise.all(found)).flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client[Symbol.asyncDispose]()));
  }

  #at(name: string): QueryClient {
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const client = this.#options.dial(this.#addressOf(name));
    this.#clients.set(name, client);
    return client;
  }

  #names(): readonly string[] {
    return [...new Set([defaultQuery, ...[...this.#map.values()].map(({ at }) => at)])];
  }

  #addressOf(name: string): string {
    return name === defaultQuery ? this.#options.address : name;
  }

  #workspacesOf(name: string): string {
    const all = [...this.#map].flatMap(([workspace, { at }]) => (at === name ? [workspace] : []));
    const more = all.length > maxNamed ? ` and ${all.length - maxNamed} more` : "";
    return `${all.slice(0, maxNamed).join(", ")}${more}`;
  }

  async #move(workspace: string, route: Route, to: string): Promise<void> {
    const end = performance.now() + moveMs;
    const leftMs = () => end - performance.now();
    // After a request that takes longer, the next answer may lack the newest of what its answer has.
    while (route.requests > 0 && leftMs() > moveMs / 2) await delay(pollMs);
    let hasFailed = false;
    const before = this.#at(route.at).position(workspace);
    before.catch(() => {
      hasFailed = true;
    });
    let goal = parsePosition((await soon(before, leftMs() / 2))?.log_position ?? "");
    while (leftMs() > 0) {
      // It would let events gather for longer than this may take.
      const next = await soon(this.#at(to).position(workspace, true), leftMs());
      const reached = parsePosition(next?.position ?? "");
      goal ??= parsePosition(next?.log_position ?? "");
      if (reached !== undefined && (goal?.epoch !== reached.epoch || reached.offset >= goal.offset)) {
        route.at = to;
        return;
      }
      await delay(pollMs);
    }
    // Old answers are better than none.
    if (hasFailed) route.at = to;
    else route.failedAt = performance.now();
  }
}

/** Undefined: it fails, or takes longer. */
async function soon<T>(answer: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  const found = await Promise.race([
    answer.catch(() => undefined),
    delay(Math.max(0, ms), over.signal).then(() => undefined),
  ]);
  over.abort();
  return found;
}

function isRecent(at: number | undefined): boolean {
  return at !== undefined && performance.now() - at < retryMs;
}

/** A client that sends each request to the query of its workspace; a request about all workspaces goes to all queries. */
export function routedQuery(routes: QueryRoutes): QueryClient {
  const send = <T>(workspace: string | undefined, request: (query: QueryClient) => Promise<T>) =>
    routes.send(workspace ?? "", request);
  return {
    readState: (request) => send(request.workspace, (query) => query.readState(request)),
    listSources: (request) => send(request.workspace, (query) => query.listSources(request)),
    runSql: (request) => send(request.workspace, (query) => query.runSql(request)),
    async *exportTables(request, signal) {
      // A route waits for its requests before it moves, and not for hours.
      yield* await send(request.workspace, async (query) => query.exportTables(request, signal));
    },
    listSessions: (request) => send(request.workspace, (query) => query.listSessions(request)),
    listOperations: (request) => send(request.workspace, (query) => query.listOperations(request)),
    search: (request) => send(request.filter?.workspace, (query) => query.search(request)),
    buildStats: (request) => send(request.workspace, (query) => query.buildStats(request)),
    stats: (about, of) => send(of.workspace, (query) => query.stats(about, of)),
    findEvents: (request) => send(request.filter?.workspace, (query) => query.findEvents(request)),
    position: (workspace = "", current = false) => send(workspace, (query) => query.position(workspace, current)),
    async setAside(workspace) {
      if (workspace !== "") return send(workspace, (query) => query.setAside(workspace));
      const all = await routes.sendToAll(async (query, isOwn) => {
        const { sources } = await query.setAside("");
        return sources.filter(({ source }) => isOwn(source.split("/")[0] ?? ""));
      });
      return { sources: [...all] };
    },
    async workspaces(workspace) {
      if (workspace !== "") return send(workspace, (query) => query.workspaces(workspace));
      const all = await routes.sendToAll(async (query, isOwn) => {
        const answer = await query.workspaces("").catch(() => undefined);
        return [{ items: answer?.items.filter((item) => isOwn(item.workspace)), isOwn }];
      });
      return {
        items: all.flatMap(({ items }) => items ?? []),
        isUnknown: (name) => all.some(({ items, isOwn }) => items === undefined && isOwn(name)),
      };
    },
    [Symbol.asyncDispose]: () => routes[Symbol.asyncDispose](),
  };
}
