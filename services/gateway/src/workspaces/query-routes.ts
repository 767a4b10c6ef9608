import { logStart } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { defaultQuery, type QueryMap, queriesOf, watchQueryMap } from "@tapedeck/shared/log/queries/query-map";
import { delay } from "@tapedeck/shared/sync/delay";
import type { LogLink } from "../log-link.ts";
import type { QueryClient } from "../query-client.ts";

export type QueryRoutesOptions = {
  /** Address of the default query. */
  readonly address: string;
  readonly dial: (address: string) => QueryClient;
};

/** How long requests wait at most while their workspace gets another query, before the one of before answers for a while. */
const moveMs = 500;
const moveAgainMs = 1_000;
const askMs = 20;
/** How long a query is waited for that may be away: everyone may request /readyz. */
const checkMs = 2_000;
/** How many workspaces a warning names. */
const maxNamed = 3;

/** The query that answers for a workspace here, and how many requests it is answering. */
type Route = { at: string; requests: number; moving?: Promise<void> | undefined; failedAt?: number };

/**
 * The queries, by the map of the workspaces' queries. A workspace changes to its next query while no request of it is answered,
 * and when that one has all that the log has then: what was in an answer is in the next one.
 */
export class QueryRoutes implements AsyncDisposable {
  readonly #options: QueryRoutesOptions;
  readonly #clients = new Map<string, QueryClient>();
  readonly #routes = new Map<string, Route>();
  #map: QueryMap = new Map();

  constructor(options: QueryRoutesOptions) {
    this.#options = options;
  }

  /** Follows the map until the signal; resolves when it was read. Until then, and while NATS is away, what is known counts. */
  async follow(link: Pick<LogLink, "opened" | "nats">, signal: AbortSignal): Promise<void> {
    await link.opened;
    while (!signal.aborted) {
      try {
        const watch = watchQueryMap(link.nats().connection, (map) => {
          this.#map = map;
        });
        signal.addEventListener("abort", () => watch[Symbol.dispose]());
        return await watch.loaded.catch(() => {}); // it goes on reading
      } catch {
        await delay(moveAgainMs, signal);
      }
    }
  }

  /** Asks the query of a workspace; empty: the default one. */
  async ask<T>(workspace: string, request: (query: QueryClient) => Promise<T>): Promise<T> {
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

  /** Asks every query that answers for something, the default one first; `isOwn`: whether it answers for a workspace. */
  async askAll<T>(
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
    // A long one may be answered meanwhile: then the next answer may lack the newest of what that one has.
    while (route.requests > 0 && leftMs() > moveMs / 2) await delay(askMs);
    // One that is gone has nothing to be compared with.
    const before = await soon(this.#at(route.at).position(workspace), leftMs() / 2);
    const goal = parsePosition(before?.log_position ?? "");
    while (leftMs() > 0) {
      const now = await soon(this.#at(to).position(workspace), leftMs());
      const reached = parsePosition(now?.position ?? "");
      if (reached !== undefined && (goal?.epoch !== reached.epoch || reached.offset >= (goal?.offset ?? logStart))) {
        route.at = to;
        return;
      }
      await delay(askMs);
    }
    route.failedAt = performance.now();
  }
}

/** Undefined when it fails, or comes later. */
async function soon<T>(answer: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  const found = await Promise.race([answer.catch(() => undefined), delay(ms, over.signal).then(() => undefined)]);
  over.abort();
  return found;
}

function isRecent(at: number | undefined): boolean {
  return at !== undefined && performance.now() - at < moveAgainMs;
}

/** Asks the query of the request's workspace, and all of them where it is about all. */
export function routedQuery(routes: QueryRoutes): QueryClient {
  const ask = <T>(workspace: string | undefined, request: (query: QueryClient) => Promise<T>) =>
    routes.ask(workspace ?? "", request);
  return {
    readState: (request) => ask(request.workspace, (query) => query.readState(request)),
    listSources: (request) => ask(request.workspace, (query) => query.listSources(request)),
    listSessions: (request) => ask(request.workspace, (query) => query.listSessions(request)),
    listOperations: (request) => ask(request.workspace, (query) => query.listOperations(request)),
    search: (request) => ask(request.filter?.workspace, (query) => query.search(request)),
    buildStats: (request) => ask(request.workspace, (query) => query.buildStats(request)),
    stats: (about, of) => ask(of.workspace, (query) => query.stats(about, of)),
    findEvents: (request) => ask(request.filter?.workspace, (query) => query.findEvents(request)),
    position: (workspace = "") => ask(workspace, (query) => query.position(workspace)),
    async setAside(workspace) {
      if (workspace !== "") return ask(workspace, (query) => query.setAside(workspace));
      const all = await routes.askAll(async (query, isOwn) => {
        const { sources } = await query.setAside("");
        return sources.filter(({ source }) => isOwn(source.split("/")[0] ?? ""));
      });
      return { sources: [...all] };
    },
    async workspaces(workspace) {
      if (workspace !== "") return ask(workspace, (query) => query.workspaces(workspace));
      const all = await routes.askAll(async (query, isOwn) => {
        const { items } = await query.workspaces("");
        return items.filter((item) => isOwn(item.workspace));
      });
      return { items: [...all] };
    },
    [Symbol.asyncDispose]: () => routes[Symbol.asyncDispose](),
  };
}
