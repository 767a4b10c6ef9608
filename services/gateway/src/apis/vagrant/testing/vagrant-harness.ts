import type { JsonObject } from "@bufbuild/protobuf";
import type { DeepPartial, Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Event as EventMessage } from "@tapedeck/proto/tapedeck/v1/event";
import { Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { type ReadStateRequest, StateHead } from "@tapedeck/proto/tapedeck/v1/query";
import { type ControlCall, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { acknowledged, testMessage } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connect } from "nats";
import type { CallContext } from "../../../call-context.ts";
import type { ControlClient } from "../../../control-client.ts";
import type { Refusal } from "../../../limits/refused-calls.ts";
import { timedSemaphore } from "../../../limits/semaphore.ts";
import { positions } from "../../../positions.ts";
import type { QueryClient } from "../../../query-client.ts";
import type { CollectionName } from "../../read-collection.ts";
import { vagrantApi } from "../vagrant-api.ts";
import { requestOf } from "./sample.ts";

/** As good as no limit: a test's calls have no end that would end their turns. */
const largeAnswers = timedSemaphore({ atOnce: 1_000, patienceMs: 1_000, what: "answers" });

export const shop = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "vagrant" });

export type Fields = DeepPartial<Event> & { readonly kind: string };

export type Harness = Awaited<ReturnType<typeof vagrantHarness>>;

/** Vagrant's API on a real log, with stand-ins for query and for the upstream that answer what they are told to. */
export async function vagrantHarness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { syncKnown: true }));
  const over = new AbortController();
  stack.defer(() => over.abort());
  const sessions: Session[] = [];
  const rows = new Map<string, Map<string, Uint8Array>>();
  const asked: Partial<ReadStateRequest>[] = [];
  const sent: ControlCall[] = [];
  const refusals: Refusal[] = [];
  const where = positions(() => log.reader);

  const query: Pick<QueryClient, "listSources" | "listSessions" | "readState"> = {
    async listSources({ upstreams, sources = [] }) {
      const isMeant = upstreams?.includes("vagrant") === true && (sources.length === 0 || sources.includes(shop));
      const current_session = sessions.at(-1)?.session ?? "";
      const items = isMeant ? [Source.fromPartial({ source: shop, upstream: "vagrant", current_session })] : [];
      return { items, next_page: "", position: "" };
    },
    async listSessions({ sessions: names = [] }) {
      return { items: sessions.filter(({ session }) => names.includes(session)), next_page: "", position: "" };
    },
    async readState(request) {
      asked.push(request);
      if (request.at === "before")
        throw new TapedeckError("before_first", "not begun", { field: "at", earliest: "e-1" });
      const { session = "", ended = false } = sessions.at(-1) ?? {};
      const found = [...(rows.get(request.collection ?? "") ?? [])];
      return {
        head: StateHead.fromPartial({ position: where.written(7), source: shop, session, session_ended: ended }),
        rows: found.filter(([key]) => key.startsWith(request.key_prefix ?? "")).map(([key, bytes]) => ({ key, bytes })),
      };
    },
  };

  let answer: ControlClient["call"] = async () => ControlReply.create();
  const control: ControlClient = {
    call(source, call) {
      sent.push(call);
      return answer(source, call);
    },
  };

  let lastSeq = 0;
  let ordinal = 0;
  const deps = { query: query as QueryClient, log: () => log.reader, positions: where };
  const api = vagrantApi({ ...deps, control, largeAnswers, refused: (refusal) => refusals.push(refusal) });
  const context = (more: Partial<CallContext> = {}): CallContext => ({
    workspace: "default",
    who: "test",
    signal: over.signal,
    ...more,
  });
  const unaries = new Map(Object.entries(api.unary));
  const owned = stack.move();
  return {
    api,
    /** Bytes of the answer, by the method's name on the wire; the request as bytes, or as JSON with proto names. */
    async call(rpc: string, request: Uint8Array | JsonObject = {}, more: Partial<CallContext> = {}): Promise<Buffer> {
      const name = rpc.replace(/^_?./, (first) => first.slice(-1).toLowerCase());
      const bytes = request instanceof Uint8Array ? request : requestOf(rpc, request);
      const answer = await unaries.get(name)?.(bytes, context(more));
      if (answer === undefined) throw new Error(`no unary method ${name}`);
      return Buffer.from(answer.bytes);
    },
    deps,
    over,
    asked,
    /** What has gone to the upstream. */
    sent,
    refusals,
    position: where.written,
    context,
    /** What query answers for a collection from here on, by key. */
    hold: (collection: CollectionName<"vagrant">, items: Readonly<Record<string, Uint8Array>>) => {
      rows.set(`vagrant.${collection}`, new Map(Object.entries(items)));
    },
    /** What the upstream answers from here on. */
    answers: (as: (call: ControlCall) => Partial<ControlReply>) => {
      answer = async (_, call) => ControlReply.fromPartial(as(call));
    },
    /** Appends events in one publish; resolves with the sequence of the last. */
    async add(...events: readonly Fields[]): Promise<number> {
      const messages = events.map((fields) => testMessage(shop, ++ordinal, EventMessage.fromPartial(fields)));
      lastSeq = acknowledged(await log.writer.publish(shop, "w1", messages, lastSeq));
      return lastSeq;
    },
    /** The source's newest session from here on, or what became of an older one. */
    session(session: string, more: Partial<Session> = {}) {
      const known = sessions.findIndex((one) => one.session === session);
      const start_position = where.written(lastSeq + 1);
      const before = known < 0 ? { session, source: shop, start_position } : sessions[known];
      sessions.splice(known < 0 ? sessions.length : known, 1, Session.fromPartial({ ...before, ...more }));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
