import type { Hello, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sessionError } from "@tapedeck/shared/events/session-check";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { ownValue } from "@tapedeck/shared/own-value";
import { nameError, namePart, type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { isUpstreamName } from "@tapedeck/shared/upstreams";
import { ulid } from "ulid";
import type { Fact } from "../normalize/fact.ts";
import { channelNames, type Normalizer } from "../normalize/normalizer.ts";
import { checkedRequests } from "./checked-requests.ts";
import { SourceClaims } from "./claims.ts";
import { type ImportMemory, importMemory } from "./imported/import-memory.ts";
import { appendFact } from "./journal/append-fact.ts";
import { releasing } from "./journal/lease.ts";
import { LostRaceError } from "./journal/settle.ts";
import { WriterClosedError } from "./journal/writer.ts";
import { LostSources } from "./lost/lost-sources.ts";
import { type Examined, examineSilent, type LastSeen } from "./lost/silent-source.ts";
import { assertRedacted, NewSources } from "./new-sources.ts";
import { notReady, sourceTaken } from "./push-errors.ts";
import { recordPush } from "./record-push.ts";
import type { RecorderOptions, Store } from "./recorder-options.ts";

export type PushContext = {
  readonly workspace: string;
  /** The owner of the source, if the tap may not choose it. */
  readonly developer?: string | undefined;
  /** Id of the token with which a tap elsewhere pushes. */
  readonly token?: string | undefined;
  /** The source is one of this ingest's configuration, which no bound applies to. */
  readonly isConfigured?: boolean;
  readonly signal: AbortSignal;
};

/** Tap id in leases that are taken only to examine what the log has of a source. */
const examiner = ulid();

/** The recording half of ingest: takes what taps push, wherever they run. */
export class Recorder implements AsyncDisposable {
  readonly #options: RecorderOptions;
  readonly #claims = new SourceClaims();
  readonly #memories = new WeakMap<Store, ImportMemory>();
  readonly #closing = new AbortController();
  readonly #lost: LostSources;
  readonly #newSources: NewSources | undefined;

  constructor(options: RecorderOptions) {
    const { newSources, onRefused = () => {} } = options;
    this.#options = options;
    this.#newSources = newSources && new NewSources(newSources, onRefused);
    this.#lost = new LostSources({ ...options, examine: (source, lastSeen) => this.#examine(source, lastSeen) });
  }

  get recording(): ReadonlyMap<SourceName, { readonly tap: string; readonly connected: boolean }> {
    return this.#claims.pushes;
  }

  /** Sources whose tap is gone and may come back, with the time since when they have been silent. */
  get lost(): ReadonlyMap<SourceName, Timestamp> {
    return this.#lost.lost;
  }

  /** Finds sources that were lost before this process began. */
  surveyLostSources({ log }: Store): Promise<void> {
    return this.#lost.survey(log.reader);
  }

  /** The workspace is removed: nothing is awaited there any more. */
  forgetWorkspace(workspace: string): void {
    this.#lost.forget((source) => sourceParts(source).workspace === workspace);
  }

  /** tapedeck.v1.Recorder/Push. Throws TapedeckError with the codes that recorder.proto names. */
  async *push(requests: AsyncIterable<PushRequest>, context: PushContext): AsyncGenerator<PushResponse, void> {
    const iterator = checkedRequests(requests)[Symbol.asyncIterator]();
    const first = await iterator.next();
    // A client that pushes nothing only checks whether it would be admitted.
    if (first.done) return;
    const hello = helloOf(first.value, context);
    assertRedacted(hello.redact, this.#options);
    const { source, normalizer } = sourceOf(hello, context.workspace, this.#options.normalizers);
    const push = await this.#claims.push(source, hello.tap);
    this.#lost.began(source);
    const signal = AbortSignal.any([context.signal, this.#closing.signal, push.stop.signal]);
    let isElsewhere = () => false;
    try {
      const store = await this.#storeOf(context.workspace);
      const leases = [store.leases.take(source, hello.tap), sessionLease(store, hello, context.workspace)] as const;
      await using _leases = releasing(leases);
      const lease = await leases[0].catch(throwUnavailable);
      isElsewhere = () => lease === undefined || lease.lost.aborted;
      if (lease === undefined) throw sourceTaken(source);
      const session = await leases[1];
      const lost = session === undefined ? lease.lost : AbortSignal.any([lease.lost, session.lost]);
      await assertWhole(store);
      if (context.isConfigured !== true) {
        await this.#newSources?.admit(source, context.token, store).catch(throwUnavailable);
      }
      const memory = this.#memories.get(store) ?? importMemory();
      this.#memories.set(store, memory);
      const options = this.#options;
      yield* recordPush({ options, store, source, normalizer, hello, memory, push, signal, lost }, iterator);
    } finally {
      this.#claims.pushEnded(source);
      if (!this.#closing.signal.aborted) this.#lost.ended(source, { elsewhere: isElsewhere() });
    }
  }

  /**
   * Records a fact that Tapedeck itself states about a source, or about the named session. The source may be recorded at
   * this moment or not. Resolves when it is in the log. Rejects if the log is unavailable or the source is being imported.
   */
  async recordFact(source: SourceName, session: string, fact: Fact): Promise<void> {
    const { log } = await this.#storeOf(sourceParts(source).workspace);
    const { signal } = this.#closing;
    for (;;) {
      const intake = this.#claims.pushes.get(source)?.intake;
      try {
        if (intake?.kind === "import") throw notReady(`${source} is being imported`);
        if (intake !== undefined) return await intake.recordFact(fact, session);
        return await appendFact({ log, source, session, fact, signal });
      } catch (cause) {
        if (signal.aborted || !(cause instanceof LostRaceError || cause instanceof WriterClosedError)) throw cause;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#lost[Symbol.asyncDispose]();
    await Promise.all([...this.#claims.pushes.values()].map(({ done }) => done));
  }

  /** @throws TapedeckError not_ready */
  async #storeOf(workspace: string): Promise<Store> {
    const stores = this.#options.stores();
    if (stores === undefined) throw notReady("the log is unavailable");
    return await stores.of(namePart(workspace)).catch(throwUnusable);
  }

  /** Undefined if the source is pushed. */
  async #examine(source: SourceName, { since, elsewhere }: LastSeen): Promise<Examined | undefined> {
    const { normalizers, lostAfterMs } = this.#options;
    const { workspace, upstream: name } = sourceParts(source);
    const textTtl = this.#options.textTtl?.(workspace);
    const normalizer = ownValue(normalizers, name);
    const { log, leases } = await this.#storeOf(workspace);
    if (normalizer === undefined) return this.#claims.isFree(source) ? {} : undefined;
    const stop = this.#claims.examine(source);
    if (stop === undefined) return undefined;
    try {
      const now = timestampNow();
      await using lease = await leases.take(source, examiner, { yields: true });
      if (lease === undefined) return { elsewhere: now };
      // The push there has just ended. Its tap has the usual time to come back.
      if (elsewhere) return { again: {} };
      const signal = AbortSignal.any([stop, this.#closing.signal, lease.lost]);
      const life = textTtl === undefined ? undefined : { textTtl, channels: channelNames(normalizer) };
      return await examineSilent({ log, source, since, lostAfterMs, life, signal });
    } catch (cause) {
      if (stop.aborted) return undefined;
      throw cause;
    } finally {
      this.#claims.examined(source);
    }
  }
}

async function assertWhole(store: Store): Promise<void> {
  await store.assertWhole().catch(throwUnusable);
}

/** @throws TapedeckError not_ready, with what is wrong with the log */
function throwUnusable(cause: unknown): never {
  if (cause instanceof LogUnusableError) throw new TapedeckError("not_ready", cause.message);
  return throwUnavailable(cause);
}

/** @throws TapedeckError the same one, or not_ready for an error of NATS */
function throwUnavailable(cause: unknown): never {
  throw cause instanceof TapedeckError ? cause : notReady("the log is unavailable", cause);
}

/** Two imports of one session at the same time could add it to two sources of a workspace. */
async function sessionLease({ leases }: Store, { imported, tap }: Hello, workspace: string) {
  if (imported === undefined) return undefined;
  const { origin_session: origin = imported.session } = imported;
  const reason = sessionError(origin);
  if (reason !== undefined) throw new TapedeckError("invalid_argument", reason, { field: "imported" });
  const lease = await leases.take(`import/${namePart(workspace)}/${origin}`, tap).catch(throwUnavailable);
  if (lease !== undefined) return lease;
  throw new TapedeckError("source_taken", `session ${imported.session} is being imported by another client`);
}

function sourceOf(
  hello: Hello,
  workspace: string,
  normalizers: RecorderOptions["normalizers"],
): { source: SourceName; normalizer: Normalizer } {
  const { developer, project, upstream } = hello;
  const normalizer = ownValue(normalizers, upstream);
  if (normalizer === undefined || !isUpstreamName(upstream)) {
    const names = Object.keys(normalizers).join(", ");
    throw new TapedeckError("invalid_argument", `"${upstream}" is not an upstream: ${names}`, {
      field: "upstream",
    });
  }
  for (const [field, name] of Object.entries({ developer, project })) {
    const reason = nameError(name);
    if (reason !== undefined) throw new TapedeckError("invalid_argument", `the ${field}'s name ${reason}`, { field });
  }
  const parts = { developer: namePart(developer), project: namePart(project), upstream };
  return { source: sourceName({ workspace, ...parts }), normalizer };
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
