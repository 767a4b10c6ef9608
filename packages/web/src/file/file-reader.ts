import type { Client, EventsOptions, Message, OperationsOptions, State, TapedeckEvent } from "@tapedeck/client";
import type { Reader } from "../data/reader.ts";
import { indexAt, isKind } from "../model/session.ts";
import { maySetState, type SessionData } from "./data.ts";

/** Answers as a gateway would that has this one session, in which nothing is running. */
export function fileReader(data: SessionData): Reader {
  const { session, events, operations, position } = data;
  const comparisons = new Map(Object.entries(data.comparisons));
  const reader = {
    sessions: () => oneByOne([session]),
    operations: (options: OperationsOptions = {}) =>
      oneByOne(operations.filter((operation) => matchesOptions(operation, options))),
    events: (options: EventsOptions = {}) => oneByOne(eventsOf(events, options)),
    subscribe: (options: EventsOptions = {}) => oneByOne<Message>([...messagesOf(events, options), complete(position)]),
    state: async (_: string, { at }: { readonly at?: string } = {}) => stateAt(data, at ?? position),
    async compare(left: string) {
      const found = comparisons.get(left);
      if (found === undefined) throw new Error("this comparison is not in the file.");
      return found;
    },
  };
  return reader as Pick<Client, keyof typeof reader>;
}

async function* oneByOne<Item>(items: readonly Item[]): AsyncGenerator<Item, void> {
  yield* items;
}

const complete = (position: string): Message => ({ type: "complete", position });

function messagesOf(events: readonly TapedeckEvent[], options: EventsOptions): readonly Message[] {
  return eventsOf(events, options).map((event) => ({ type: "event", position: event.position, event }));
}

function eventsOf(events: readonly TapedeckEvent[], { kinds, after, until }: EventsOptions): readonly TapedeckEvent[] {
  const [from, to] = [positionIn(after), positionIn(until)];
  if (after === "now") return [];
  return events.filter(
    ({ position, kind }) =>
      (from === undefined || position > from) &&
      (to === undefined || position <= to) &&
      (kinds === undefined || kinds.some((pattern) => isKind(kind, pattern))),
  );
}

/** Undefined: no bound. */
function positionIn(statePoint: EventsOptions["after"]): string | undefined {
  return typeof statePoint !== "string" || statePoint === "start" || statePoint === "now" ? undefined : statePoint;
}

function matchesOptions(
  { kind, outcome, startedAt, startPosition, ...own }: SessionData["operations"][number],
  { kinds, outcomes, from, to, at, runner, loop }: OperationsOptions,
): boolean {
  const began = Date.parse(startedAt ?? "");
  const until = positionIn(at);
  return (
    (runner === undefined || own.runner === runner) &&
    (loop === undefined || own.loop === loop) &&
    (until === undefined || startPosition <= until) &&
    (kinds === undefined || kinds.some((one) => one === kind)) &&
    (outcomes === undefined || outcomes.some((one) => one === outcome)) &&
    (from === undefined || began >= new Date(from).getTime()) &&
    (to === undefined || began < new Date(to).getTime())
  );
}

/** The state of a position, or of the last moment before it whose state is in the file: `at` names it. */
function stateAt({ session, events, statePoints, states }: SessionData, at: string): State {
  const statePoint = statePoints[indexAt(statePoints, at)];
  if (statePoint === undefined || statePoint.position > at) throw new Error("The state of then is not in this file.");
  const isOfThen = !events.some(
    (event) => event.position > statePoint.position && event.position <= at && maySetState(event),
  );
  return {
    source: session.source,
    session: session.session,
    sessionEnded: session.endReason !== null,
    notHeardSince: null,
    heardAt: {},
    position: statePoint.position,
    at: isOfThen ? at : statePoint.position,
    upstream: session.source.split("/").at(-1) ?? "",
    state: states[statePoint.state] ?? {},
  };
}
