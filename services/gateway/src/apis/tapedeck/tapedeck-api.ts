import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { type Filter, parseFilter } from "@tapedeck/shared/filter/filter";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { reportHoles } from "@tapedeck/shared/log/holes/report-holes";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { CallContext } from "../../call-context.ts";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import { type Positions, positions as positionsOf } from "../../positions.ts";
import { refuseAt } from "../session-scope.ts";
import type { AnswerOf } from "./answers.ts";
import { type CompareApi, compareApi } from "./compare/compare.ts";
import { type EventsPage, type EventsPageRequest, eventsPage } from "./events-page.ts";
import { type Lists, listsApi, placed } from "./list-request.ts";
import { indexedLog } from "./log-index/indexed-log.ts";
import { type SubscriptionMessage, type SubscriptionMessages, stateMessage } from "./messages.ts";
import { pace, type ReplaySpeed } from "./pace.ts";
import { type ExportTablesApi, exportTablesApi } from "./sql/export-tables.ts";
import { type SqlApi, sqlApi } from "./sql/sql.ts";
import { type LoadedState, type StateApiDeps, type StateReply, stateAnswer, stateReader } from "./state.ts";
import { type StatsApi, statsApi } from "./stats.ts";
import { type StatusDeps, statusOf } from "./status.ts";
import { type Subscription, subscribe, subscribeInBatches } from "./subscribe.ts";

/** A subscription as a client asks for it, on any transport. */
export type SubscribeRequest = {
  /** `start`, `now`, a position or an RFC 3339 time. Default: `after` of the call's context, or `now`. */
  readonly after?: string;
  /** A position or a time, inclusive, or `now`; a future time is waited for. Without it a subscription has no end. */
  readonly until?: string;
  /** The filter as the client wrote it: arrays by field. */
  readonly filter?: unknown;
  readonly state?: boolean;
  readonly original?: boolean;
  /** How fast history is played. Default: as fast as it can be read. */
  readonly speed?: ReplaySpeed;
  /** The subscription ends at the log's end, even when `until` is a future time. */
  readonly isHistory?: boolean;
};

export type OpenSubscription = {
  /** The position after which it starts. */
  readonly position: string;
  readonly messages: SubscriptionMessages;
};

/** Everything throws TapedeckError (docs/api.md#errors); streams may throw it later, too. */
export type TapedeckApi = {
  readonly lists: Lists;
  readonly stats: StatsApi;
  readonly status: (
    caller: Pick<CallContext, "workspace" | "roles" | "everywhere" | "developer">,
  ) => Promise<AnswerOf<"Status">>;
  readonly state: (context: CallContext) => Promise<StateReply>;
  /** State in the upstream's own messages. */
  readonly stateMessages: (context: CallContext) => Promise<LoadedState>;
  readonly events: (
    request: EventsPageRequest,
    viewer: Pick<CallContext, "workspace" | "roles" | "developer">,
  ) => Promise<EventsPage>;
  /** Runs a query as the logins for SQL of the caller's workspace do. */
  readonly sql: SqlApi;
  /** The rows of the tables for SQL as encoded messages, tapedeck.v1.ExportTablesResponse. */
  readonly exportTables: ExportTablesApi;
  /** The differences between two loops, sessions or sources. */
  readonly compare: CompareApi;
  readonly subscribe: (request: SubscribeRequest, context: CallContext) => Promise<OpenSubscription>;
};

export type TapedeckApiDeps = StateApiDeps & {
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly positions: Positions;
  /** For pages of events: each may hold tens of MiB. */
  readonly pages: TimedSemaphore;
  readonly services: StatusDeps["services"];
  /** Whether developers can be put side by side. */
  readonly compareDevelopers: boolean;
  /** What the log has lost. Default: nothing. */
  readonly holes?: () => readonly KnownHole[];
};

const noHoles = (): readonly KnownHole[] => [];

/** Tapedeck's own API: lists, state, events. Knows no transport. */
export function tapedeckApi(deps: TapedeckApiDeps): TapedeckApi {
  const { query, log, positions, pages, largeAnswers, services, compareDevelopers, holes = noHoles } = deps;
  const readState = stateReader({ query, largeAnswers });
  const pageLog = () => log().pages;
  const pageDeps = { log: pageLog, positions: positionsOf(pageLog), query };

  /** The state that a subscription begins with, and where its events begin, so that none is missed or repeated. */
  async function stateThenEvents(after: string, filter: Filter, context: CallContext) {
    if (after === "start") {
      const message = "there is no state before the first event: request it for now, a position or a time";
      throw invalidArgument(message, "after");
    }
    // Query may still know the state at a position whose next events the log no longer has.
    if (after !== "now") await positions.resolveAfter(after);
    const stateAt = after === "now" ? { minPosition: positions.written(await positions.lastOffset()) } : { at: after };
    const answer = await readState({ ...context, ...onlySource(filter), ...stateAt });
    return { afterOffset: positions.own(answer.position), message: stateMessage(answer), release: answer.done };
  }

  async function endOf(until: string, { isHistory = false }: SubscribeRequest) {
    const end = isHistory ? await positions.resolveUntil(until) : await positions.resolveEnd(until);
    return typeof end === "number" ? { untilOffset: end } : { untilTime: end };
  }

  return {
    lists: listsApi(query),
    stats: statsApi({ query, compareDevelopers }),
    status: (caller) => statusOf({ query, log: log(), services }, caller),
    sql: sqlApi(query),
    exportTables: exportTablesApi(query),
    state: async (context) => stateAnswer(await readState(context)),
    stateMessages: readState,
    events: eventsPage({ ...pageDeps, holes }, pages),
    // What it compares may lack events: better than no answer.
    compare: compareApi({
      query,
      readState,
      compareDevelopers,
      events: eventsPage({ ...pageDeps, holes: noHoles }, pages),
    }),

    async subscribe(request, context) {
      refuseAt(context, "a stream has no `at`: use `after` to set where it starts");
      const { after = context.after ?? "now", until, state = false, original = false, speed = "max" } = request;
      const filter = placed(parseFilter(request.filter ?? {}), context);
      const { workspace, signal } = context;
      const first = state ? await stateThenEvents(after, filter, context) : undefined;
      try {
        const afterOffset = first?.afterOffset ?? (await positions.resolveAfter(after));
        const end = until === undefined ? {} : await endOf(until, request);
        const subscription: Subscription = { workspace, filter, afterOffset, original, ...end };
        const reader = reportHoles(indexedLog(log(), query, { workspace, filter }), holes, filter.sessions);
        const paced =
          speed === "max"
            ? subscribeInBatches(reader, subscription, signal)
            : pace(subscribe(reader, subscription, signal), speed, signal);
        return {
          position: positions.written(afterOffset),
          messages: first === undefined ? paced : beginningWith([first.message], first.release, paced),
        };
      } catch (error) {
        first?.release();
        throw error;
      }
    },
  };
}

/** Drops the first messages once they are yielded: they may be large, and the rest may have no end. */
async function* beginningWith(
  first: SubscriptionMessage[],
  release: () => void,
  rest: SubscriptionMessages,
): AsyncGenerator<SubscriptionMessage | readonly SubscriptionMessage[], void> {
  try {
    yield* first.splice(0);
  } finally {
    release();
  }
  yield* rest;
}

/** The one source, and session, that a filter names. A filter without sources means the only source there is. */
function onlySource({ sources, sessions, developers, projects }: Filter): Pick<CallContext, "source" | "session"> {
  const isOne = [sources, sessions, developers, projects].every((values) => (values?.length ?? 1) === 1);
  const isWhole = sources !== undefined || (developers === undefined) === (projects === undefined);
  if (!isOne || !isWhole) {
    const message = "state needs a filter that names one source: filter.sources with one entry";
    throw invalidArgument(message, "filter.sources");
  }
  const source = sources?.[0] ?? (developers && projects && `${developers[0]}/${projects[0]}`);
  return {
    ...(source !== undefined && { source }),
    ...(sessions?.[0] !== undefined && { session: sessions[0] }),
  };
}
