import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Filter, parseFilter } from "@tapedeck/shared/filter/filter";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { CallContext } from "../../call-context.ts";
import type { Positions } from "../../positions.ts";
import type { QueryClient } from "../../query-client.ts";
import { eventsPage } from "./events-page.ts";
import { listsApi } from "./lists.ts";
import { stateApi } from "./state.ts";
import { type SubscriptionMessage, subscribe } from "./subscribe.ts";

/** What a client asks for when it subscribes, on any transport. */
export type SubscribeRequest = {
  readonly after?: string;
  readonly until?: string;
  /** As the client wrote it: arrays by field. */
  readonly filter?: unknown;
  readonly state?: boolean;
  readonly original?: boolean;
};

export type OpenSubscription = {
  /** The position after which it starts. */
  readonly afterSeq: number;
  readonly messages: AsyncIterable<SubscriptionMessage>;
};

export type TapedeckApi = ReturnType<typeof tapedeckApi>;

export type TapedeckApiDeps = { readonly query: QueryClient; readonly log: LogReader; readonly positions: Positions };

/** Tapedeck's own API: lists, state, events. Knows no transport. */
export function tapedeckApi({ query, log, positions }: TapedeckApiDeps) {
  const readState = stateApi(query);

  /** The state that a subscription begins with, and the events after it: without a race, without repeats. */
  const stateThenEvents = async (request: SubscribeRequest, filter: Filter, context: CallContext) => {
    const source = filter.sources?.[0] ?? soleProject(filter);
    const after = request.after ?? "now";
    const at = after === "now" ? {} : { at: after };
    const minPosition = after === "now" ? { minPosition: positions.written((await log.bounds()).lastSeq) } : {};
    const state = await readState({ ...context, ...(source !== undefined && { source }), ...at, ...minPosition });
    const json = `{"type":"state","position":"${state.position}","source":"${state.source}","state":${JSON.stringify(state.state)}}`;
    return {
      afterSeq: positions.own(state.position),
      message: { type: "state" as const, position: state.position, json },
    };
  };

  return {
    written: positions.written,
    lastSeq: async () => (await log.bounds()).lastSeq,
    lists: listsApi(query),
    state: readState,
    events: eventsPage(log, positions),

    async subscribe(request: SubscribeRequest, context: CallContext): Promise<OpenSubscription> {
      const filter = parseFilter(request.filter ?? {});
      const { workspace, signal } = context;
      const original = request.original === true;
      const begin = request.state === true ? await stateThenEvents(request, filter, context) : undefined;
      const afterSeq = begin?.afterSeq ?? (await positions.resolveAfter(request.after ?? "now"));
      const untilSeq = request.until === undefined ? undefined : await positions.resolveUntil(request.until);
      const end = untilSeq === undefined ? {} : { untilSeq };
      const events = subscribe(log, { workspace, filter, afterSeq, original, ...end }, signal);
      const messages =
        begin === undefined
          ? events
          : (async function* () {
              yield begin.message;
              yield* events;
            })();
      return { afterSeq, messages };
    },
  };
}

function soleProject({ developers, projects }: Filter): string | undefined {
  if (developers?.length === 1 && projects?.length === 1) return `${developers[0]}/${projects[0]}`;
  if (developers === undefined && projects === undefined) return undefined;
  throw new TapedeckError(
    "invalid_argument",
    "state needs a filter that names one source: filter.sources with one entry",
    {
      field: "filter.sources",
    },
  );
}
