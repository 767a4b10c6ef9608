import type { DeepPartial, Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Event as EventMessage } from "@tapedeck/proto/tapedeck/v1/event";
import { Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { type ReadStateRequest, StateHead } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, offsetOf, type Sequence } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { newEvent, publishEach, publishTogether } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connect } from "nats";
import type { CallContext } from "../../call-context.ts";
import { timedSemaphore } from "../../limits/semaphore.ts";
import { positions } from "../../positions.ts";
import type { QueryClient } from "../../query-client.ts";

/** Practically no limit: the calls of a test never end, so they never give their turns back. */
export const largeAnswers = timedSemaphore({ atOnce: 1_000, timeoutMs: 1_000, what: "answers" });

export type Fields = DeepPartial<Event> & { readonly kind: string };

/** One source on a real log, and a stand-in for query that gives the answers of a test. */
export async function sourceHarness(source: SourceName) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  const over = new AbortController();
  stack.defer(() => over.abort());
  const { upstream } = sourceParts(source);
  const sessions: Session[] = [];
  const rows = new Map<string, Map<string, Uint8Array>>();
  const requests: Partial<ReadStateRequest>[] = [];
  const where = positions(() => log.reader);

  const query: Pick<QueryClient, "listSources" | "listSessions" | "readState"> = {
    async listSources({ upstreams, sources = [] }) {
      const isMeant = upstreams?.includes(upstream) === true && (sources.length === 0 || sources.includes(source));
      const current_session = sessions.at(-1)?.session ?? "";
      const items = isMeant ? [Source.fromPartial({ source, upstream, current_session })] : [];
      return { items, next_page: "", position: where.written(offsetOf(7)) };
    },
    async listSessions({ sessions: names = [] }) {
      return { items: sessions.filter(({ session }) => names.includes(session)), next_page: "", position: "" };
    },
    async readState(request) {
      if (request.source !== source) throw new TapedeckError("unknown_source", "no such source");
      requests.push(request);
      if (request.at === "before")
        throw new TapedeckError("before_first", "not begun", { field: "at", earliest: "e-1" });
      const { session = "", ended = false } = sessions.at(-1) ?? {};
      const found = [...(rows.get(request.collection ?? "") ?? [])];
      return {
        head: StateHead.fromPartial({
          position: where.written(offsetOf(7)),
          newest_source: where.written(offsetOf(7)),
          source,
          session,
          session_ended: ended,
        }),
        rows: found.filter(([key]) => key.startsWith(request.key_prefix ?? "")).map(([key, bytes]) => ({ key, bytes })),
      };
    },
  };

  let lastSeq = 0;
  let ordinal = 0;
  const owned = stack.move();
  return {
    /** What the API under test is built on. */
    deps: { query: query as QueryClient, log: () => log.reader, positions: where },
    over,
    requests: requests,
    /** The position of the event in a message. */
    position: (seq: Sequence) => where.written(offsetOf(seq)),
    /** The position after a whole message. */
    endPosition: (seq: Sequence) => where.written(endOf(seq)),
    context: (more: Partial<CallContext> = {}): CallContext => ({
      workspace: "default",
      who: "test",
      kind: "token",
      signal: over.signal,
      ...more,
    }),
    /** What query answers for a collection, such as "rkt.pods", from here on, by key. */
    hold: (collection: string, items: Readonly<Record<string, Uint8Array>>) => {
      rows.set(collection, new Map(Object.entries(items)));
    },
    /** Appends events, each in a message of its own; resolves with the sequence of the last. */
    async add(...events: readonly Fields[]): Promise<number> {
      const added = events.map((fields) => newEvent(source, ++ordinal, EventMessage.fromPartial(fields)));
      lastSeq = await publishEach(log.writer, source, added, lastSeq);
      return lastSeq;
    },
    /** Appends events in as few messages as they fit into. */
    async addTogether(...events: readonly Fields[]): Promise<void> {
      const added = events.map((fields) => newEvent(source, ++ordinal, EventMessage.fromPartial(fields)));
      lastSeq = await publishTogether(log.writer, source, added, lastSeq);
    },
    /** The source's newest session from here on, or what became of an older one. */
    session(session: string, more: Partial<Session> = {}) {
      const known = sessions.findIndex((one) => one.session === session);
      const start_position = where.written(offsetOf(lastSeq + 1));
      const before = known < 0 ? { session, source, start_position } : sessions[known];
      sessions.splice(known < 0 ? sessions.length : known, 1, Session.fromPartial({ ...before, ...more }));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
