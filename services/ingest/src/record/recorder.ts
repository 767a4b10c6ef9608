import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { ControlRequest, Hello, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ControlCall, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sessionProblem } from "@tapedeck/shared/events/session-check";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import type { LogSurvey } from "@tapedeck/shared/log/log";
import { adoptSubject, controlSubject } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import { namePart, type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween, msOfTimestamp, timestampNow, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { isUpstreamName } from "@tapedeck/shared/upstreams";
import type { NatsConnection } from "nats";
import { ulid } from "ulid";
import { ControlCalls } from "../control.ts";
import type { Fact } from "../normalize/fact.ts";
import { channelNames, type Normalizer } from "../normalize/normalizer.ts";
import { checkedRequests } from "./checked-requests.ts";
import type { ReplayTimes } from "./frames/replay-sorter.ts";
import { type ImportMemory, importMemory } from "./imported/import-memory.ts";
import { type ImportedSession, openImport } from "./imported/imported-session.ts";
import { appendFact } from "./journal/append-fact.ts";
import { type Leases, releasing } from "./journal/lease.ts";
import type { SourceJournalOptions } from "./journal/source-journal.ts";
import { LostRaceError, WriterClosedError } from "./journal/writer.ts";
import { LostSources } from "./lost/lost-sources.ts";
import { type Examined, examineUnheard, type LastHeard } from "./lost/unheard-source.ts";
import { PushResponses } from "./push-responses.ts";
import { observedPublisher } from "./session/publish-observed.ts";
import { openSessionRecorder, type SessionRecorder, type SessionRecorderListener } from "./session/session-recorder.ts";
import { within } from "./within.ts";

/** What recording needs, all of it on NATS. */
export type Store = {
  readonly nats: NatsConnection;
  readonly log: SourceJournalOptions["log"] & { readonly reader: LogSurvey; readonly epoch: string };
  /** Rejects with one sentence if the log has lost its end: new events would get positions that were given before. */
  readonly assertWhole: () => Promise<void>;
  readonly leases: Leases;
  /** Larger frames don't fit into the log. */
  readonly frameBytes: number;
};

/**
 * Times after which something is taken not to come any more. Where upstream and tap share a busy machine, it may come
 * later than by default.
 */
export type RecordingTimes = {
  /** For the frames that a channel repeats after connecting; see ReplaySorter. */
  readonly replay?: ReplayTimes;
  /** See ControlOptions. */
  readonly loopStartMs?: number;
};

export type RecorderOptions = {
  /** Undefined while NATS is away at the start. */
  readonly store: () => Store | undefined;
  readonly normalizers: Readonly<Record<string, Normalizer>>;
  readonly logger: Logger;
  /** Seconds that text lives in the log; absent: forever. */
  readonly textTtl?: number | undefined;
  /** A session whose tap has not come back after this time is considered over. */
  readonly lostAfterMs: number;
  /** A source is reported as lost after this time; see LostSources. */
  readonly noticeMs?: number;
  readonly times?: RecordingTimes | undefined;
  readonly listener?: (source: SourceName) => SessionRecorderListener;
  readonly onRecording?: (source: SourceName, state: "began" | "ended" | "reconnected") => void;
};

export type PushContext = {
  readonly workspace: string;
  /** The owner of the source, if the tap may not choose it. */
  readonly developer?: string | undefined;
  readonly signal: AbortSignal;
};

/** The recording half of ingest: takes what taps push, wherever they run. */
export type Recorder = AsyncDisposable & {
  /** tapedeck.v1.Recorder/Push. Throws TapedeckError with the codes that recorder.proto names. */
  push(requests: AsyncIterable<PushRequest>, context: PushContext): AsyncGenerator<PushResponse, void>;
  readonly recording: ReadonlyMap<SourceName, { readonly tap: string; readonly connected: boolean }>;
  /** Sources whose tap is gone and may come back, with the time since when nothing was heard of them. */
  readonly lost: ReadonlyMap<SourceName, Timestamp>;
  /** Finds sources that were lost before this process began. */
  readonly surveyLostSources: (store: Store) => Promise<void>;
  /**
   * Records a fact that Tapedeck itself states about a source, or about the named session. The source may be recorded at
   * this moment or not. Resolves when it is in the log. Rejects if the log is away or the source is being imported.
   */
  recordFact(source: SourceName, session: string, fact: Fact): Promise<void>;
};

type Intake = SessionRecorder | ImportedSession;

type ActivePush = {
  readonly tap: string;
  readonly connected: boolean;
  /** Undefined until it is opened. */
  readonly intake: Intake | undefined;
  readonly stop: AbortController;
  readonly done: Promise<void>;
};

/** Tap id in leases that are taken only to examine what the log has of a source. */
const examiner = ulid();

/** A channel without an item for this long is silent. The time is longer while the tap is behind. */
const silenceMs = { live: 200, behind: 2_000 } as const;
const behindMs = 2_000;

export function recorder(options: RecorderOptions): Recorder {
  const { normalizers, logger, onRecording } = options;
  const active = new Map<SourceName, ActivePush>();
  /** Examinations of sources that nobody pushes. A tap that arrives meanwhile stops them. */
  const examining = new Map<SourceName, Pick<ActivePush, "stop" | "done">>();
  const memories = new WeakMap<Store, ImportMemory>();
  const closing = new AbortController();
  const lost = new LostSources({ ...options, examine });

  async function* push(requests: AsyncIterable<PushRequest>, context: PushContext) {
    const iterator = checkedRequests(requests)[Symbol.asyncIterator]();
    const first = await iterator.next();
    // A client that pushes nothing only checks whether it would be admitted.
    if (first.done) return;
    const hello = helloOf(first.value, context);
    const { source, normalizer } = sourceOf(hello, context.workspace);
    const claim = await claimSource(source, hello.tap);
    const signal = AbortSignal.any([context.signal, closing.signal, claim.stop.signal]);
    let isElsewhere = () => false;
    try {
      const store = options.store();
      if (store === undefined) throw notReady("the log is away");
      const leases = [store.leases.take(source, hello.tap), sessionLease(store, hello, context.workspace)] as const;
      await using _leases = releasing(leases);
      const lease = await leases[0].catch((cause: unknown) => {
        throw notReady("the log is away", cause);
      });
      isElsewhere = () => lease === undefined || lease.lost.aborted;
      if (lease === undefined) throw sourceTaken(source);
      const session = await leases[1];
      const lost = session === undefined ? lease.lost : AbortSignal.any([lease.lost, session.lost]);
      await store.assertWhole().catch((cause: unknown) => {
        throw cause instanceof LogUnusableError
          ? new TapedeckError("not_ready", cause.message)
          : notReady("the log is away", cause);
      });
      yield* record({ store, source, normalizer, hello, lost }, iterator, signal, claim);
    } finally {
      claim.release();
      if (!closing.signal.aborted) lost.ended(source, { elsewhere: isElsewhere() });
    }
  }

  /** Undefined if the source is pushed. */
  async function examine(source: SourceName, { since, elsewhere }: LastHeard): Promise<Examined | undefined> {
    const store = options.store();
    const { upstream: name } = sourceParts(source);
    const normalizer = normalizers[name];
    if (store === undefined) throw notReady("the log is away");
    if (active.has(source) || examining.has(source)) return undefined;
    if (normalizer === undefined) return {};
    const stop = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    examining.set(source, { stop, done });
    try {
      const now = timestampNow();
      await using lease = await store.leases.take(source, examiner);
      if (lease === undefined) return { elsewhere: now };
      // The push there has just ended. Its tap has the usual time to come back.
      if (elsewhere) return { again: {} };
      const signal = AbortSignal.any([stop.signal, closing.signal, lease.lost]);
      const { log } = store;
      const { textTtl, lostAfterMs } = options;
      const life = textTtl === undefined ? undefined : { textTtl, channels: channelNames(normalizer) };
      return await examineUnheard({ log, source, since, lostAfterMs, life, signal });
    } catch (cause) {
      if (stop.signal.aborted) return undefined;
      throw cause;
    } finally {
      examining.delete(source);
      resolve();
    }
  }

  /** Two imports of one session at the same time could add it to two sources of a workspace. */
  async function sessionLease({ leases }: Store, { imported, tap }: Hello, workspace: string) {
    if (imported === undefined) return undefined;
    const { origin_session: origin = imported.session } = imported;
    const problem = sessionProblem(origin);
    if (problem !== undefined) throw new TapedeckError("invalid_argument", problem, { field: "imported" });
    const lease = await leases.take(`import/${namePart(workspace)}/${origin}`, tap).catch((cause: unknown) => {
      throw notReady("the log is away", cause);
    });
    if (lease !== undefined) return lease;
    throw new TapedeckError("source_taken", `session ${imported.session} is being imported by another client`);
  }

  /** One push per source: a push of the same tap replaces the older one, another tap is refused. */
  async function claimSource(source: SourceName, tap: string) {
    for (;;) {
      const before = active.get(source) ?? examining.get(source);
      if (before === undefined) break;
      if ("tap" in before && before.tap !== tap) throw sourceTaken(source);
      before.stop.abort();
      await before.done;
    }
    lost.began(source);
    const stop = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    let intake: Intake | undefined;
    const push: ActivePush = {
      tap,
      stop,
      done,
      get connected() {
        return intake?.connected ?? false;
      },
      get intake() {
        return intake;
      },
    };
    active.set(source, push);
    return {
      stop,
      opened: (session: Intake) => {
        intake = session;
      },
      release: () => {
        active.delete(source);
        resolve();
      },
    };
  }

  type OpenPush = {
    readonly store: Store;
    readonly source: SourceName;
    readonly normalizer: Normalizer;
    readonly hello: Hello;
    readonly lost: AbortSignal;
  };

  async function* record(
    { store, source, normalizer, hello, lost }: OpenPush,
    iterator: AsyncIterator<PushRequest>,
    signal: AbortSignal,
    claim: { readonly opened: (session: Intake) => void },
  ): AsyncGenerator<PushResponse, void> {
    const over = new AbortController();
    const live = AbortSignal.any([signal, over.signal]);
    const { log, frameBytes } = store;
    const committed = hello.first_index === 0n ? 0n : hello.first_index - 1n;
    const responses = new PushResponses(committed);
    const listener = {
      ...options.listener?.(source),
      observed: observedPublisher(store.nats),
      session: (id: string) => responses.sessionFound(id),
      committed: (index: bigint) => responses.committed(index),
    };
    const { textTtl, times: { replay } = {} } = options;
    const opening = { log, source, normalizer, hello, signal: live, listener, frameBytes, textTtl, replay };
    const { imported } = hello;
    const memory = memories.get(store) ?? importMemory();
    memories.set(store, memory);
    const opened = imported === undefined ? openSessionRecorder(opening) : openImport({ ...opening, imported, memory });
    await using session: Intake = await opened.catch((cause: unknown) => {
      throw signal.aborted ? notReady("recording was stopped") : cause;
    });
    claim.opened(session);
    signal.addEventListener("abort", () => responses.end(notReady("recording was stopped")), { signal: over.signal });
    lost.addEventListener("abort", () => responses.end(notReady(`${source} was taken by another recorder`)), {
      signal: over.signal,
    });
    void session.ended.then((cause) => {
      if (!over.signal.aborted) responses.end(cause);
    });
    if (signal.aborted || lost.aborted) responses.end(notReady("recording was stopped"));
    // An import has no upstream that could be called.
    const unsubscribe =
      session.kind === "live"
        ? [
            answerControl(store.nats, source, normalizer, session, responses, live),
            adoptStates(store.nats, source, session),
          ]
        : [];
    logger.info({ source, tap: hello.tap, first: String(hello.first_index) }, "recording");
    onRecording?.(source, "began");
    try {
      yield { body: { $case: "welcome", value: { source, committed } } };
      void takeAll(iterator, session, responses, live).then(
        () => responses.end(),
        (cause: unknown) => responses.end(cause),
      );
      yield* responses.stream();
      if (session.kind === "import")
        yield {
          body: { $case: "import_ended", value: { added: BigInt(session.added), session: session.session } },
        };
    } catch (cause) {
      throw toPushError(cause, source);
    } finally {
      over.abort();
      responses.end();
      for (const end of unsubscribe) end();
      onRecording?.(source, "ended");
      logger.info({ source, tap: hello.tap, committed: String(session.committed()) }, "recording ended");
    }
  }

  /** Takes what the tap pushes until its stream ends. Resolves when all of it is in the log. */
  async function takeAll(
    iterator: AsyncIterator<PushRequest>,
    session: Intake,
    responses: PushResponses,
    signal: AbortSignal,
  ): Promise<void> {
    const yieldIfDue = yieldToEventLoop();
    let next = ask();
    let at = timestampNow();
    let came = performance.now();
    while (!signal.aborted) {
      const silence = msBetween(at, timestampNow()) > behindMs ? silenceMs.behind : silenceMs.live;
      const got = session.waiting ? await within(next, silence) : await next;
      if (signal.aborted) return;
      if (got === undefined) {
        await session.advance(timestampOfMs(msOfTimestamp(at) + performance.now() - came));
        continue;
      }
      if (got.done) break;
      const { body } = got.value;
      next = ask();
      if (body?.$case === "control_answer") responses.answered(body.value);
      else if (body?.$case === "item") {
        at = body.value.at ?? at;
        came = performance.now();
        await session.take(body.value);
        await yieldIfDue();
      } else throw new TapedeckError("invalid_argument", "expected an item or an answer", { field: "body" });
    }
    while (session.waiting && !signal.aborted) {
      await delay(silenceMs.live, signal);
      await session.advance(timestampOfMs(msOfTimestamp(at) + performance.now() - came));
    }
    await session.drained();

    function ask() {
      const asked = iterator.next();
      // A failure is handled where it is awaited, or no longer matters.
      asked.catch(() => {});
      return asked;
    }
  }

  function answerControl(
    nats: NatsConnection,
    source: SourceName,
    normalizer: Normalizer,
    recorder: SessionRecorder,
    responses: PushResponses,
    signal: AbortSignal,
  ): () => void {
    const onProblem = (err: unknown) => logger.warn({ source, err }, "a control call could not be recorded");
    const ask = (request: ControlRequest) => responses.ask(request);
    const control = new ControlCalls({
      recorder,
      normalizer,
      ask,
      signal,
      onProblem,
      loopStartMs: options.times?.loopStartMs,
    });
    const subscription = nats.subscribe(controlSubject(source), {
      callback: (error, message) => {
        if (error !== null) return;
        const answer = async () => ControlReply.encode(await control.make(ControlCall.decode(message.data))).finish();
        answer()
          // Throws if the answer exceeds the message limit or the connection is closed.
          .then((reply) => void message.respond(reply))
          .catch((err: unknown) => {
            onProblem(err);
            const reply = { code: 14, message: "the call could not be recorded", response: Buffer.alloc(0) };
            message.respond(ControlReply.encode({ ...reply, reason: "not_ready" }).finish());
          })
          .catch(onProblem);
      },
    });
    return () => subscription.unsubscribe();
  }

  /** Adopts the states that query requests. */
  function adoptStates(nats: NatsConnection, source: SourceName, recorder: SessionRecorder): () => void {
    const subscription = nats.subscribe(adoptSubject(source), {
      callback: (error, message) => {
        if (error !== null) return;
        try {
          recorder.adopt(Observed.decode(message.data));
        } catch (err) {
          logger.warn({ source, err }, "a state could not be adopted");
        }
      },
    });
    return () => subscription.unsubscribe();
  }

  function sourceOf(hello: Hello, workspace: string): { source: SourceName; normalizer: Normalizer } {
    const { developer, project, upstream } = hello;
    const normalizer = normalizers[upstream];
    if (normalizer === undefined || !isUpstreamName(upstream)) {
      const names = Object.keys(normalizers).join(", ");
      throw new TapedeckError("invalid_argument", `"${upstream}" is not an upstream: ${names}`, {
        field: "upstream",
      });
    }
    const parts = { developer: namePart(developer), project: namePart(project), upstream };
    return { source: sourceName({ workspace, ...parts }), normalizer };
  }

  async function recordFact(source: SourceName, session: string, fact: Fact): Promise<void> {
    const store = options.store();
    if (store === undefined) throw notReady("the log is away");
    for (;;) {
      const intake = active.get(source)?.intake;
      try {
        if (intake?.kind === "import") throw notReady(`${source} is being imported`);
        if (intake !== undefined) return await intake.recordFact(fact, session);
        return await appendFact({ log: store.log, source, session, fact, signal: closing.signal });
      } catch (cause) {
        if (closing.signal.aborted || !(cause instanceof LostRaceError || cause instanceof WriterClosedError))
          throw cause;
      }
    }
  }

  return {
    push,
    recordFact,
    recording: active,
    lost: lost.lost,
    surveyLostSources: ({ log }) => lost.survey(log.reader),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await lost[Symbol.asyncDispose]();
      await Promise.all([...active.values()].map(({ done }) => done));
    },
  };
}

function helloOf({ body }: PushRequest, { developer }: PushContext): Hello {
  if (body?.$case !== "hello")
    throw new TapedeckError("invalid_argument", "the first request must be hello", { field: "hello" });
  if (body.value.tap === "") throw new TapedeckError("invalid_argument", "hello has no tap", { field: "tap" });
  if (body.value.redact !== "" && body.value.redact !== "on" && body.value.redact !== "off") {
    throw new TapedeckError("invalid_argument", 'redact is "on" or "off"', { field: "redact" });
  }
  return developer === undefined ? body.value : { ...body.value, developer };
}

function sourceTaken(source: SourceName): TapedeckError {
  return new TapedeckError("source_taken", `${source} is recorded by another tap`);
}

function notReady(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("not_ready", `${message}: try again in a moment`, {}, { cause });
}

/** A tap can do nothing about a lost race. It pushes again, and then the log tells how far it got. */
function toPushError(cause: unknown, source: SourceName): unknown {
  return cause instanceof LostRaceError ? notReady(`${source} was written by another recorder`, cause) : cause;
}
