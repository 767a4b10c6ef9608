import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Hello, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ControlCall, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import type { LogSurvey } from "@tapedeck/shared/log/log";
import { adoptSubject, controlSubject } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import { namePart, type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";
import { pause } from "@tapedeck/shared/sync/delay";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentNow, momentOfMs, msBetween, msOfMoment } from "@tapedeck/shared/time/moment";
import { isUpstreamName } from "@tapedeck/shared/upstreams";
import type { NatsConnection } from "nats";
import { ulid } from "ulid";
import { controlling } from "../control.ts";
import { sessionProblem } from "../import/session-check.ts";
import type { Fact } from "../normalize/fact.ts";
import { channelNames, type Normalizer } from "../normalize/normalizer.ts";
import { checkedRequests } from "./checked-requests.ts";
import { type ImportMemory, importMemory } from "./imported/import-memory.ts";
import { type ImportedSession, openImport } from "./imported/imported-session.ts";
import { sayAlone } from "./journal/append-fact.ts";
import { type Leases, releasing } from "./journal/lease.ts";
import type { BookOptions } from "./journal/source-journal.ts";
import { LostRaceError, WriterClosedError } from "./journal/writer.ts";
import { LostSources } from "./lost/lost-sources.ts";
import { type Examined, examineUnheard, type LastHeard } from "./lost/unheard-source.ts";
import { type Responses, responses } from "./push-responses.ts";
import { observedTeller } from "./session/publish-observed.ts";
import { openRecording, type Recording, type RecordingWatch } from "./session/session-recorder.ts";

/** What recording stands on, all of it on NATS. */
export type Store = {
  readonly nats: NatsConnection;
  readonly log: BookOptions["log"] & { readonly reader: LogSurvey; readonly epoch: string };
  /** Rejects with one sentence when the log has lost its end: what is written then would stand where something else stood. */
  readonly assertWhole: () => Promise<void>;
  readonly leases: Leases;
  /** Larger frames don't fit the log. */
  readonly frameBytes: number;
};

export type RecorderOptions = {
  /** Undefined while NATS is away at the start. */
  readonly store: () => Store | undefined;
  readonly normalizers: Readonly<Record<string, Normalizer>>;
  readonly logger: Logger;
  /** Seconds that text lives in the log; absent: for ever. */
  readonly textTtl?: number | undefined;
  /** After which a session whose tap does not come back is taken to be over. */
  readonly lostAfterMs: number;
  /** After which its source is said to be lost; see LostSources. */
  readonly noticeMs?: number;
  readonly watch?: (source: SourceName) => RecordingWatch;
  readonly onRecording?: (source: SourceName, state: "began" | "ended" | "reconnected") => void;
};

export type PushContext = {
  readonly workspace: string;
  /** Whose source it is, where the tap is not free to say. */
  readonly developer?: string | undefined;
  readonly signal: AbortSignal;
};

/** The recording half of ingest: takes what taps push, wherever they are. */
export type Recorder = AsyncDisposable & {
  /** tapedeck.v1.Recorder/Push. Throws TapedeckError for the reasons that recorder.proto names. */
  push(requests: AsyncIterable<PushRequest>, context: PushContext): AsyncGenerator<PushResponse, void>;
  readonly recording: ReadonlyMap<SourceName, { readonly tap: string; readonly connected: boolean }>;
  /** Sources whose tap is gone and waited for, and since when nothing has been heard of them. */
  readonly lost: ReadonlyMap<SourceName, Moment>;
  /** Looks for sources that were lost before this began, when the log is there. */
  readonly watchOver: (store: Store) => Promise<void>;
  /**
   * Records what Tapedeck says of a source, whether it is being recorded now or not; of a session where one is named.
   * Resolves when it is in the log. Rejects when the log is away, or the source is being imported.
   */
  say(source: SourceName, session: string, fact: Fact): Promise<void>;
};

type Intake = Recording | ImportedSession;

type Active = {
  readonly tap: string;
  readonly connected: boolean;
  /** Undefined until it is opened. */
  readonly intake: Intake | undefined;
  readonly stop: AbortController;
  readonly done: Promise<void>;
};

/** Of the lease of one that only looks at what the log says. */
const examiner = ulid();

/** Without an item for this long a channel is taken to be silent; longer while the tap is behind. */
const silenceMs = { live: 200, behind: 2_000 } as const;
const behindMs = 2_000;

export function recorder(options: RecorderOptions): Recorder {
  const { normalizers, logger, onRecording } = options;
  const active = new Map<SourceName, Active>();
  /** Looks at sources that nobody pushes. A tap that comes meanwhile comes first. */
  const examining = new Map<SourceName, Pick<Active, "stop" | "done">>();
  const memories = new WeakMap<Store, ImportMemory>();
  const closing = new AbortController();
  const lost = new LostSources({ ...options, examine });

  async function* push(requests: AsyncIterable<PushRequest>, context: PushContext) {
    const iterator = checkedRequests(requests)[Symbol.asyncIterator]();
    const first = await iterator.next();
    // Whoever pushes nothing only asks whether they would be let in.
    if (first.done) return;
    const hello = helloOf(first.value, context);
    const { source, reading } = read(hello, context.workspace);
    const place = await takePlace(source, hello.tap);
    const signal = AbortSignal.any([context.signal, closing.signal, place.stop.signal]);
    let isElsewhere = () => false;
    try {
      const store = options.store();
      if (store === undefined) throw notReady("the log is away");
      const taking = [store.leases.take(source, hello.tap), sessionLease(store, hello, context.workspace)] as const;
      await using _leases = releasing(taking);
      const lease = await taking[0].catch((cause: unknown) => {
        throw notReady("the log is away", cause);
      });
      isElsewhere = () => lease === undefined || lease.lost.aborted;
      if (lease === undefined) throw taken(source);
      const session = await taking[1];
      const lost = session === undefined ? lease.lost : AbortSignal.any([lease.lost, session.lost]);
      await store.assertWhole().catch((cause: unknown) => {
        throw cause instanceof LogUnusableError
          ? new TapedeckError("not_ready", cause.message)
          : notReady("the log is away", cause);
      });
      yield* record({ store, source, reading, hello, lost }, iterator, signal, place);
    } finally {
      place.leave();
      if (!closing.signal.aborted) lost.ended(source, { elsewhere: isElsewhere() });
    }
  }

  /** Undefined when the source is pushed. */
  async function examine(source: SourceName, { since, elsewhere }: LastHeard): Promise<Examined | undefined> {
    const store = options.store();
    const { upstream: name } = sourceParts(source);
    const reading = normalizers[name];
    if (store === undefined) throw notReady("the log is away");
    if (active.has(source) || examining.has(source)) return undefined;
    if (reading === undefined) return {};
    const stop = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    examining.set(source, { stop, done });
    try {
      const now = momentNow();
      await using lease = await store.leases.take(source, examiner);
      if (lease === undefined) return { elsewhere: now };
      // The push there has just ended: its tap has the time to come back that it has everywhere.
      if (elsewhere) return { again: {} };
      const signal = AbortSignal.any([stop.signal, closing.signal, lease.lost]);
      const { log } = store;
      const { textTtl, lostAfterMs } = options;
      const life = textTtl === undefined ? undefined : { textTtl, channels: channelNames(reading) };
      return await examineUnheard({ log, source, since, lostAfterMs, life, signal });
    } catch (cause) {
      if (stop.signal.aborted) return undefined;
      throw cause;
    } finally {
      examining.delete(source);
      resolve();
    }
  }

  /** Two imports of one session at the same time could bring it into two sources of a workspace. */
  async function sessionLease({ leases }: Store, { imported, tap }: Hello, workspace: string) {
    if (imported === undefined) return undefined;
    const { origin_session: origin = imported.session } = imported;
    const problem = sessionProblem(origin);
    if (problem !== undefined) throw new TapedeckError("invalid_argument", problem, { field: "imported" });
    const lease = await leases.take(`import/${namePart(workspace)}/${origin}`, tap).catch((cause: unknown) => {
      throw notReady("the log is away", cause);
    });
    if (lease !== undefined) return lease;
    throw new TapedeckError("source_taken", `session ${imported.session} is being imported by somebody else`);
  }

  /** One push per source: the same tap ends its own older one, another tap is turned away. */
  async function takePlace(source: SourceName, tap: string) {
    for (;;) {
      const before = active.get(source) ?? examining.get(source);
      if (before === undefined) break;
      if ("tap" in before && before.tap !== tap) throw taken(source);
      before.stop.abort();
      await before.done;
    }
    lost.began(source);
    const stop = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    let recording: Intake | undefined;
    const mine: Active = {
      tap,
      stop,
      done,
      get connected() {
        return recording?.connected ?? false;
      },
      get intake() {
        return recording;
      },
    };
    active.set(source, mine);
    return {
      stop,
      began: (opened: Intake) => {
        recording = opened;
      },
      leave: () => {
        active.delete(source);
        resolve();
      },
    };
  }

  type Pushed = {
    readonly store: Store;
    readonly source: SourceName;
    readonly reading: Normalizer;
    readonly hello: Hello;
    readonly lost: AbortSignal;
  };

  async function* record(
    { store, source, reading, hello, lost }: Pushed,
    iterator: AsyncIterator<PushRequest>,
    signal: AbortSignal,
    place: { readonly began: (recording: Intake) => void },
  ): AsyncGenerator<PushResponse, void> {
    const over = new AbortController();
    const live = AbortSignal.any([signal, over.signal]);
    const { log, frameBytes } = store;
    let found: (session: string) => void = () => {};
    const session = (id: string) => found(id);
    const watch = { ...options.watch?.(source), observed: observedTeller(store.nats), session };
    const opening = { log, source, reading, hello, signal: live, watch, frameBytes, textTtl: options.textTtl };
    const { imported } = hello;
    const memory = memories.get(store) ?? importMemory();
    memories.set(store, memory);
    const opened = imported === undefined ? openRecording(opening) : openImport({ ...opening, imported, memory });
    await using recording: Intake = await opened.catch((cause: unknown) => {
      throw signal.aborted ? notReady("recording was stopped") : cause;
    });
    place.began(recording);
    const committed = hello.first_index === 0n ? 0n : hello.first_index - 1n;
    const down = responses(committed, recording.committed);
    recording.onCommitted = down.committedMoved;
    found = down.sessionFound;
    signal.addEventListener("abort", () => down.end(notReady("recording was stopped")), { signal: over.signal });
    lost.addEventListener("abort", () => down.end(notReady(`${source} was taken by another recorder`)), {
      signal: over.signal,
    });
    void recording.ended.then((cause) => {
      if (!over.signal.aborted) down.end(cause);
    });
    if (signal.aborted || lost.aborted) down.end(notReady("recording was stopped"));
    // Behind an import there is no upstream that could be asked.
    const deafen =
      "say" in recording
        ? [
            answerControl(store.nats, source, reading, recording, down, live),
            takeAnswers(store.nats, source, recording),
          ]
        : [];
    logger.info({ source, tap: hello.tap, first: String(hello.first_index) }, "recording");
    onRecording?.(source, "began");
    try {
      yield { body: { $case: "welcome", value: { source, committed } } };
      void takeAll(iterator, recording, down, live).then(
        () => down.end(),
        (cause: unknown) => down.end(cause),
      );
      yield* down.stream();
      if (!("say" in recording))
        yield {
          body: { $case: "import_ended", value: { added: BigInt(recording.added), session: recording.session } },
        };
    } catch (cause) {
      throw explained(cause, source);
    } finally {
      over.abort();
      down.end();
      for (const end of deafen) end();
      onRecording?.(source, "ended");
      logger.info({ source, tap: hello.tap, committed: String(recording.committed()) }, "recording ended");
    }
  }

  /** Takes what the tap pushes to the end of its stream; resolves when all of it is in the log. */
  async function takeAll(
    iterator: AsyncIterator<PushRequest>,
    recording: Intake,
    down: Responses,
    signal: AbortSignal,
  ): Promise<void> {
    const breathe = breather();
    let next = ask();
    let at = momentNow();
    let came = performance.now();
    while (!signal.aborted) {
      const silence = msBetween(at, momentNow()) > behindMs ? silenceMs.behind : silenceMs.live;
      const got = recording.waiting ? await within(next, silence) : await next;
      if (signal.aborted) return;
      if (got === undefined) {
        await recording.advance(momentOfMs(msOfMoment(at) + performance.now() - came));
        continue;
      }
      if (got.done) break;
      const { body } = got.value;
      next = ask();
      if (body?.$case === "control_answer") down.answered(body.value);
      else if (body?.$case === "item") {
        at = body.value.at ?? at;
        came = performance.now();
        await recording.take(body.value);
        await breathe();
      } else throw new TapedeckError("invalid_argument", "expected an item or an answer", { field: "body" });
    }
    while (recording.waiting && !signal.aborted) {
      await pause(silenceMs.live, signal);
      await recording.advance(momentOfMs(msOfMoment(at) + performance.now() - came));
    }
    await recording.drained();

    function ask() {
      const asked = iterator.next();
      // Its failure is met when it is waited for, or when nobody cares any more.
      asked.catch(() => {});
      return asked;
    }
  }

  function answerControl(
    nats: NatsConnection,
    source: SourceName,
    reading: Normalizer,
    recording: Recording,
    down: Responses,
    signal: AbortSignal,
  ): () => void {
    const onProblem = (err: unknown) => logger.warn({ source, err }, "a control call could not be recorded");
    const control = controlling({ recording, reading, ask: down.ask, signal, onProblem });
    const subscription = nats.subscribe(controlSubject(source), {
      callback: (error, message) => {
        if (error !== null) return;
        const answer = async () => ControlReply.encode(await control(ControlCall.decode(message.data))).finish();
        answer()
          // Throws when the answer is larger than a message may be, or the connection is closed.
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

  /** What query asks to be adopted. */
  function takeAnswers(nats: NatsConnection, source: SourceName, recording: Recording): () => void {
    const subscription = nats.subscribe(adoptSubject(source), {
      callback: (error, message) => {
        if (error !== null) return;
        try {
          recording.adopt(Observed.decode(message.data));
        } catch (err) {
          logger.warn({ source, err }, "a state could not be adopted");
        }
      },
    });
    return () => subscription.unsubscribe();
  }

  function read(hello: Hello, workspace: string): { source: SourceName; reading: Normalizer } {
    const { developer, project, upstream } = hello;
    const reading = normalizers[upstream];
    if (reading === undefined || !isUpstreamName(upstream)) {
      const names = Object.keys(normalizers).join(", ");
      throw new TapedeckError("invalid_argument", `"${upstream}" is not an upstream: ${names}`, {
        field: "upstream",
      });
    }
    const parts = { developer: namePart(developer), project: namePart(project), upstream };
    return { source: sourceName({ workspace, ...parts }), reading };
  }

  async function say(source: SourceName, session: string, fact: Fact): Promise<void> {
    const store = options.store();
    if (store === undefined) throw notReady("the log is away");
    for (;;) {
      const intake = active.get(source)?.intake;
      try {
        if (intake !== undefined && !("say" in intake)) throw notReady(`${source} is being imported`);
        if (intake !== undefined) return await intake.say(fact, session);
        return await sayAlone({ log: store.log, source, session, fact, signal: closing.signal });
      } catch (cause) {
        if (closing.signal.aborted || !(cause instanceof LostRaceError || cause instanceof WriterClosedError))
          throw cause;
      }
    }
  }

  return {
    push,
    say,
    recording: active,
    lost: lost.lost,
    watchOver: ({ log }) => lost.survey(log.reader),
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

function taken(source: SourceName): TapedeckError {
  return new TapedeckError("source_taken", `${source} is recorded by another tap`);
}

function notReady(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("not_ready", `${message}: try again in a moment`, {}, { cause });
}

/** A lost race is nothing that the tap could mend: it comes again, and then the log says how far it got. */
function explained(cause: unknown, source: SourceName): unknown {
  return cause instanceof LostRaceError ? notReady(`${source} was written by another recorder`, cause) : cause;
}

/** Undefined when nothing has come in that time. */
function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  // As cheap as can be: an import waits here for each of its items.
  return new Promise((resolve, reject) => {
    const late = setTimeout(resolve, ms, undefined);
    promise.then(resolve, reject).finally(() => clearTimeout(late));
  });
}
