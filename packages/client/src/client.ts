import type { Backoff } from "./backoff.ts";
import type { CompareOptions, Comparison } from "./comparison.ts";
import type { WebSocketClass } from "./connection.ts";
import type { TapedeckEvent } from "./event.ts";
import { type Filter, positionOrTimeText } from "./filter.ts";
import { type HistoryPage, type SearchOptions, searchIn } from "./history.ts";
import { httpAt } from "./http.ts";
import { iterable } from "./iterable.ts";
import type { KindsLike } from "./kinds.ts";
import { Link, type Seat, type Subscriber } from "./link.ts";
import { type ListOptions, list, type NewestOptions, newestEvents } from "./lists.ts";
import type { Message } from "./message.ts";
import type {
  Operation,
  OperationsOptions,
  Session,
  SessionsOptions,
  Source,
  SourcesOptions,
  State,
  StateOptions,
} from "./resources.ts";
import { type Stats, statsOf } from "./stats.ts";
import { type LinkPool, type SubscriptionOptions, subscription } from "./subscription.ts";

/** How to reach a Tapedeck server, and how long to try. */
export type ConnectOptions = {
  /** The gateway's HTTP address, such as "http://127.0.0.1:7052". */
  readonly url: string;
  /** Required if the gateway uses tokens. In a page, everyone who can see the page can read it. */
  readonly token?: string;
  /** Required where there is no global WebSocket (Node 20): the one of the package `ws`. */
  readonly WebSocket?: WebSocketClass;
  /** Called when the connection for live reading is lost or can't be made, and when it is there. The client connects again by itself. */
  readonly onConnection?: (isOpen: boolean) => void;
  /** How many characters of messages may wait in each iteration for a slow consumer. Default: 1 Mi. */
  readonly maxWaiting?: number;
};

/**
 * Reads from a Tapedeck server. It is connected only while something is being read. Each iteration is independent: it
 * begins with its first `next()`, and ends by `break`, its signal or `close`.
 */
export type Client = Disposable & {
  /**
   * Events as they happen, or from any earlier point: each once and in order, over as many connections as that takes.
   * @throws TapedeckError when the gateway refuses the request
   */
  events<const Pattern extends string = "*">(
    options?: EventsOptions<Pattern>,
  ): AsyncIterable<TapedeckEvent<KindsLike<Pattern>>>;
  /**
   * Events and the messages between them (state, marks), each with the position to resume after.
   * @throws TapedeckError when the gateway refuses the request
   */
  subscribe<const Pattern extends string = "*">(
    options?: SubscriptionOptions<Pattern>,
  ): AsyncIterable<Message<KindsLike<Pattern>>>;
  /**
   * State of a source, now or at a past time. `source`: "developer/project", "developer/project/upstream", or the
   * full name.
   * @throws TapedeckError when the gateway refuses the request, not_ready included; TypeError (of fetch) without an answer
   */
  state(source: string, options?: StateOptions): Promise<State>;
  /**
   * The differences between two sides, likely explanations of a failure first. A side is a loop
   * ("<session>.<runner>.<loop>"), a session's id, or a source; a session or a source may have "@" and a position or
   * time behind it. Throws as `state` does.
   */
  compare(left: string, options?: CompareOptions): Promise<Comparison>;
  /** Newest first, as the other lists. Throws as `state` does. */
  sources(options?: SourcesOptions): AsyncIterable<Source>;
  sessions(options?: SessionsOptions): AsyncIterable<Session>;
  operations(options?: OperationsOptions): AsyncIterable<Operation>;
  /**
   * A page of all loops, commands, jobs, pods and sessions, or of those in which a text stands, with the line. Throws as
   * `state` does.
   */
  search(options?: SearchOptions): Promise<HistoryPage>;
  /**
   * The newest events that match, in their order; at most 1,000. They are found by an index, however long the log is.
   * Throws as `state` does.
   */
  newest<const Pattern extends string = "*">(
    options: Filter<Pattern> & { readonly last: number; readonly signal?: AbortSignal },
  ): Promise<readonly TapedeckEvent<KindsLike<Pattern>>[]>;
  /** How long developers wait, what fails, how long until it is good again: in groups, once asked. */
  readonly stats: Stats;
  /** Ends all iterations. */
  close(): void;
};

/** Which events to read, and from where. `state` is for subscriptions only. */
export type EventsOptions<Pattern extends string = string> = Omit<SubscriptionOptions<Pattern>, "state">;

/** Times to wait. */
export type Timeouts = {
  /** Between two attempts. */
  readonly backoff: Backoff;
  /** After this much silence the client pings the gateway; after as much again it takes the connection for lost. */
  readonly quietMs: number;
};

const defaultTimeouts: Timeouts = { backoff: { first: 200, max: 10_000 }, quietMs: 15_000 };

/** The most subscriptions that a gateway accepts on one socket. */
const maxOnSocket = 64;

/** @throws TypeError when the url is invalid */
export function connect(options: ConnectOptions): Client {
  return patientClient(options, defaultTimeouts);
}

export function patientClient(
  { url, token, onConnection = () => {}, maxWaiting = 1 << 20, ...otherOptions }: ConnectOptions,
  timeouts: Timeouts,
): Client {
  const base = new URL(url).href.replace(/\/+$/, "");
  const http = httpAt(base, token);
  const closing = new AbortController();
  const links: Link[] = [];

  function newLink(): Link {
    const WebSocket = otherOptions.WebSocket ?? (globalThis.WebSocket as WebSocketClass | undefined);
    if (WebSocket === undefined)
      throw new TypeError("there is no global WebSocket: pass one with connect({ url, WebSocket })");
    const link = new Link({
      WebSocket,
      url: `${base.replace(/^http/, "ws")}/api/v1/ws`,
      protocols: ["tapedeck.v1.json", ...(token === undefined ? [] : [`tapedeck.bearer.${token}`])],
      refusal: http.refusal,
      onConnection,
      ...timeouts,
    });
    links.push(link);
    return link;
  }

  const pool: LinkPool = {
    join(subscriber: Subscriber): Seat {
      const link = links.find(({ size }) => size < maxOnSocket) ?? newLink();
      return link.join(subscriber);
    },
    maxWaiting,
    backoff: timeouts.backoff,
  };

  /** Aborted with its iteration, the user's signal, or the client. */
  const reading = <T>(signal: AbortSignal | undefined, run: (over: AbortSignal) => AsyncGenerator<T, void>) =>
    iterable((left) => run(AbortSignal.any([left, closing.signal, ...(signal === undefined ? [] : [signal])])));
  const listing = <Item>(name: Parameters<typeof list>[1], options: ListOptions) =>
    reading(options.signal, (over) => list<Item>(http, name, options, over));
  const close = () => closing.abort();

  const client = {
    events: (options: EventsOptions = {}) =>
      reading(options.signal, (over) => eventsOf(subscription(options, pool, over))),
    subscribe: (options: SubscriptionOptions = {}) =>
      reading(options.signal, (over) => subscription(options, pool, over)),
    async state(source: string, { at, session, signal }: StateOptions = {}) {
      const query = { source, session, at: at === undefined ? undefined : positionOrTimeText(at) };
      return (await http.get("/api/v1/state", query, signal)) as State;
    },
    async compare(left: string, { right, at, signal }: CompareOptions = {}) {
      const query = { left, right, at: at === undefined ? undefined : positionOrTimeText(at) };
      return (await http.get("/api/v1/compare", query, signal)) as Comparison;
    },
    sources: (options: SourcesOptions = {}) => listing<Source>("sources", options),
    sessions: (options: SessionsOptions = {}) => listing<Session>("sessions", options),
    operations: (options: OperationsOptions = {}) => listing<Operation>("operations", options),
    search: (options: SearchOptions = {}) => searchIn(http, options),
    newest: ({ signal, ...query }: NewestOptions & { readonly signal?: AbortSignal }) =>
      newestEvents(http, query, signal),
    stats: statsOf(http),
    close,
    [Symbol.dispose]: close,
  };
  return client as Client;
}

async function* eventsOf(messages: AsyncIterable<Message>): AsyncGenerator<TapedeckEvent, void> {
  for await (const message of messages) if (message.type === "event") yield message.event;
}
