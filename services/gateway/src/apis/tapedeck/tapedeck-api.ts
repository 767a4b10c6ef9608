import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { EventJson } from "@tapedeck/shared/events/json";
import { type Filter, parseFilter } from "@tapedeck/shared/filter/filter";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { CallContext } from "../../call-context.ts";
import type { WaitingLine } from "../../limits/semaphore.ts";
import type { Positions } from "../../positions.ts";
import { refuseMoment } from "../session-scope.ts";
import { type EventsPageRequest, eventsPage } from "./events-page.ts";
import { type ListMessages, listMessages, placed } from "./list-request.ts";
import { type Lists, listsApi, type Page } from "./lists.ts";
import { type SubscriptionMessage, stateMessage } from "./messages.ts";
import { pace, type Speed } from "./pace.ts";
import { type StateAnswer, type StateDeps, type StateRead, stateAnswer, stateReader } from "./state.ts";
import { subscribe } from "./subscribe.ts";

/** What a client asks for when it subscribes, on any transport. */
export type SubscribeRequest = {
  /** `start`, `now` (the default, unless the call's context says other), a position or an RFC 3339 time. */
  readonly after?: string;
  /** A position or a time, inclusive, or `now`; a time to come is waited for. Without it a subscription has no end. */
  readonly until?: string;
  /** As the client wrote it: arrays by field. */
  readonly filter?: unknown;
  readonly state?: boolean;
  readonly original?: boolean;
  /** How fast history is played; without it as fast as it can be read. */
  readonly speed?: Speed;
  /** It ends at the log's end, also where `until` is a time to come. */
  readonly isHistory?: boolean;
};

export type OpenSubscription = {
  /** The position after which it starts. */
  readonly position: string;
  readonly messages: AsyncIterable<SubscriptionMessage>;
};

/** Everything throws TapedeckError (the table of DESIGN 7); what streams may throw it later, too. */
export type TapedeckApi = {
  /** As JSON, asked for by name. */
  readonly lists: Lists;
  /** The same in messages. */
  readonly listMessages: ListMessages;
  readonly state: (context: CallContext) => Promise<StateAnswer>;
  /** The same in the upstream's own messages. */
  readonly stateMessages: (context: CallContext) => Promise<StateRead>;
  readonly events: (request: EventsPageRequest) => Promise<Page<EventJson>>;
  readonly subscribe: (request: SubscribeRequest, context: CallContext) => Promise<OpenSubscription>;
};

export type TapedeckApiDeps = StateDeps & {
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly positions: Positions;
  /** For pages of events: each may hold tens of MiB. */
  readonly pages: WaitingLine;
};

/** Tapedeck's own API: lists, state, events. Knows no transport. */
export function tapedeckApi({ query, log, positions, pages, largeAnswers }: TapedeckApiDeps): TapedeckApi {
  const readState = stateReader({ query, largeAnswers });

  /** The state that a subscription begins with, and the events after it: without a race, without repeats. */
  async function stateThenEvents(after: string, filter: Filter, context: CallContext) {
    if (after === "start") {
      const message = "before the first event there is no state: ask for it now, at a position or at a time";
      throw invalidArgument(message, "after");
    }
    // Query may still know the state at a position whose next events the log has let go of.
    if (after !== "now") await positions.resolveAfter(after);
    const place = after === "now" ? { minPosition: positions.written(await positions.lastSeq()) } : { at: after };
    const answer = await readState({ ...context, ...placeOf(filter), ...place });
    return { afterSeq: positions.own(answer.position), message: stateMessage(answer), taken: answer.done };
  }

  async function endOf(until: string, { isHistory = false }: SubscribeRequest) {
    const end = isHistory ? await positions.resolveUntil(until) : await positions.resolveEnd(until);
    return typeof end === "number" ? { untilSeq: end } : { untilTime: end };
  }

  return {
    lists: listsApi(query),
    listMessages: listMessages(query),
    state: async (context) => stateAnswer(await readState(context)),
    stateMessages: readState,
    events: eventsPage(log, positions, pages),

    async subscribe(request, context) {
      refuseMoment(context, "a stream has no `at`: use `after` to say where it starts");
      const { after = context.after ?? "now", until, state = false, original = false, speed = "max" } = request;
      const filter = placed(parseFilter(request.filter ?? {}), context);
      const { workspace, signal } = context;
      const first = state ? await stateThenEvents(after, filter, context) : undefined;
      try {
        const afterSeq = first?.afterSeq ?? (await positions.resolveAfter(after));
        const end = until === undefined ? {} : await endOf(until, request);
        const events = subscribe(log(), { workspace, filter, afterSeq, original, ...end }, signal);
        const paced = pace(events, speed, signal);
        return {
          position: positions.written(afterSeq),
          messages: first === undefined ? paced : beginningWith([first.message], first.taken, paced),
        };
      } catch (error) {
        first?.taken();
        throw error;
      }
    },
  };
}

/** The first ones are let go of when they are taken: they may be large, and what follows may be without an end. */
async function* beginningWith(
  first: SubscriptionMessage[],
  taken: () => void,
  rest: AsyncIterable<SubscriptionMessage>,
): AsyncGenerator<SubscriptionMessage, void> {
  try {
    yield* first.splice(0);
  } finally {
    taken();
  }
  yield* rest;
}

/** The one source, and session, that a filter names; without any word about sources, the only one there is. */
function placeOf({ sources, sessions, developers, projects }: Filter): Pick<CallContext, "source" | "session"> {
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
