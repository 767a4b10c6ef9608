import type { Session } from "@tapedeck/proto/tapedeck/v1/lists";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { sessionOf } from "@tapedeck/shared/log/batch/batch";
import type {
  FollowOptions,
  HeldBatches,
  HeldEvent,
  LogReader,
  ReadFrom,
  RecordedEvent,
} from "@tapedeck/shared/log/log";
import { justBefore, laterOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { AnswerHead, CallContext } from "../call-context.ts";
import type { Positions } from "../positions.ts";
import type { QueryClient } from "../query-client.ts";
import { nameOf, resolveSession, resolveSource } from "./resolve-source.ts";

export type ScopeDeps = {
  readonly query: QueryClient;
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly positions: Positions;
};

/** The range of a stream: the current session and those after it, or the one session that the call names. */
export type SessionScope = {
  readonly source: SourceName;
  /** The session that the call names, with which the stream ends. */
  readonly only: Session | undefined;
  /** Before the first event of the session. */
  readonly sessionStart: Offset;
  /** After which the stream starts. */
  readonly afterOffset: Offset;
  readonly head: AnswerHead;
};

/** @throws TapedeckError unknown_source, ambiguous_source, unknown_session, invalid_argument and the errors of `after` */
export async function sessionScope(
  { query, positions }: ScopeDeps,
  context: CallContext,
  upstream: UpstreamName,
): Promise<SessionScope> {
  refuseAt(context, "a stream has no `at`: use `after` to set where it starts");
  const source = await resolveSource(query, context, upstream);
  const session = await resolveSession(query, context.workspace, source, context.session);
  const only = context.session === undefined ? undefined : session;
  const sessionStart = session === undefined ? logStart : justBefore(positions.own(session.start_position));
  const after = context.after === undefined ? sessionStart : await positions.resolveAfter(context.after);
  const afterOffset = only === undefined ? after : laterOf(after, sessionStart);
  const head = { position: positions.written(afterOffset), session: session?.session ?? "" };
  return { source: nameOf(source), only, sessionStart, afterOffset, head };
}

/** @throws TapedeckError invalid_argument when a call names a moment that it has no use for */
export function refuseAt({ at }: Pick<CallContext, "at">, message: string): void {
  if (at !== undefined) throw invalidArgument(message, "at");
}

export type ScopeOptions = FollowOptions & {
  /** When it aborts, the stream ends with what was recorded by then. */
  readonly due?: AbortSignal;
};

/** The scope's events of these subjects: history, then live, without an end unless the call names a session. */
export async function* eventsIn(
  deps: ScopeDeps,
  scope: SessionScope,
  from: ReadFrom,
  options: ScopeOptions,
): AsyncGenerator<RecordedEvent, void> {
  for await (const batch of eventBatchesIn(deps, scope, from, options)) {
    for (const held of batch) {
      const recorded = held.decode();
      if (recorded !== undefined) yield recorded;
      if (options.signal.aborted) return;
    }
  }
}

/** The same, with the events that are there at the same time together. A batch may be empty. */
export async function* eventBatchesIn(
  { log, positions }: ScopeDeps,
  { source, only }: SessionScope,
  from: ReadFrom,
  { due, ...options }: ScopeOptions,
): HeldBatches {
  const { signal } = options;
  const isOf = (held: HeldEvent) => only === undefined || sessionIn(held) === only.session;
  const end = positions.own(only?.end_position ?? "");
  let done = from.afterOffset;
  if (only?.ended !== true) {
    const ends = eventSubject(source, ownChannel, "session.ended");
    const subjects = only === undefined ? from.subjects : [...from.subjects, ends];
    const until = due === undefined ? signal : AbortSignal.any([signal, due]);
    for await (const batch of log().followBatches({ ...from, subjects }, { ...options, signal: until })) {
      const over = only === undefined ? -1 : batch.findIndex((held) => isOver(held, only.session, end));
      const within = over < 0 ? batch : batch.slice(0, over);
      yield within.filter((held) => isFrame(held) && isOf(held));
      if (over >= 0) return;
      done = batch.at(-1)?.offset ?? done;
    }
    if (signal.aborted) return;
  }
  const last = only?.ended === true ? end : await positions.lastOffset();
  for await (const batch of log().historyBatches({ ...from, afterOffset: done }, last, signal)) {
    yield batch.filter(isOf);
  }
}

/** By the subject, which ends with the channel and the noun of the kind. */
function isFrame({ subject }: HeldEvent): boolean {
  return !subject.endsWith(".tapedeck", subject.lastIndexOf("."));
}

function sessionIn({ bytes }: HeldEvent): string | undefined {
  return bytes && sessionOf(bytes);
}

/**
 * Whether the named session, which was running at the call, has ended: by its own end, or by an event of a later session.
 * Ends up to `lastOffset`, its last event at the call, do not count: the session was found again after them.
 */
function isOver(held: HeldEvent, session: string, lastOffset: Offset): boolean {
  if (held.offset <= lastOffset) return false;
  const own = sessionIn(held);
  if (own !== session) return own !== undefined && own > session;
  if (isFrame(held)) return false;
  const kind = held.decode()?.event.kind;
  return kind === "session.ended" || kind === "session.lost";
}
