import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Hello, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Normalizer } from "../normalize/normalizer.ts";
import type { ActivePush, Intake } from "./claims.ts";
import { keyOfSource } from "./frames/identity.ts";
import type { ImportMemory } from "./imported/import-memory.ts";
import { openImport } from "./imported/imported-session.ts";
import { LostRaceError } from "./journal/settle.ts";
import { assertRedacted } from "./new-sources.ts";
import { notReady } from "./push-errors.ts";
import { PushResponses } from "./push-responses.ts";
import type { RecorderOptions, Store } from "./recorder-options.ts";
import { adoptStates, answerControl } from "./session/answer-calls.ts";
import { LastSeenPublisher } from "./session/publish-last-seen.ts";
import { observedPublisher } from "./session/publish-observed.ts";
import { openSessionRecorder } from "./session/session-recorder.ts";
import { takeAll } from "./take-all.ts";

export type AdmittedPush = {
  readonly options: RecorderOptions;
  readonly store: Store;
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly hello: Hello;
  readonly memory: ImportMemory;
  readonly push: ActivePush;
  /** Ends the recording. */
  readonly signal: AbortSignal;
  /** Aborts when another recorder has the source. */
  readonly lost: AbortSignal;
};

/** Records what an admitted tap pushes, and answers it. */
export async function* recordPush(
  admitted: AdmittedPush,
  iterator: AsyncIterator<PushRequest>,
): AsyncGenerator<PushResponse, void> {
  const { source, hello, push, signal } = admitted;
  const { logger, onRecording } = admitted.options;
  const over = new AbortController();
  const live = AbortSignal.any([signal, over.signal]);
  const committed = hello.first_index === 0n ? 0n : hello.first_index - 1n;
  const responses = new PushResponses(committed);
  const listener = admitted.options.listener?.(source);
  const lastSeen = new LastSeenPublisher({ nats: admitted.store.nats, source, signal: live, onSeen: listener?.onSeen });
  await using session: Intake = await openIntake(admitted, { responses, lastSeen, listener }, live);
  push.intake = session;
  endWhenOver(responses, session, admitted, over.signal);
  // An import has no upstream that could be called.
  const answers = session.kind === "live" ? answersOf(admitted, session, responses, live) : [];
  logger.info({ source, tap: hello.tap, first: String(hello.first_index) }, "recording");
  onRecording?.(source, "began");
  try {
    yield { body: { $case: "welcome", value: { source, committed } } };
    void takeAll(iterator, session, responses, live, lastSeen).then(
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
    for (const end of answers) end();
    onRecording?.(source, "ended");
    logger.info({ source, tap: hello.tap, committed: String(session.committed()) }, "recording ended");
  }
}

/** What learns of recording. */
type Reported = {
  readonly responses: PushResponses;
  readonly lastSeen: LastSeenPublisher;
  readonly listener: ReturnType<NonNullable<AdmittedPush["options"]["listener"]>> | undefined;
};

async function openIntake(
  { options, store, source, normalizer, hello, memory, signal }: AdmittedPush,
  { responses, lastSeen, listener }: Reported,
  live: AbortSignal,
): Promise<Intake> {
  const { log, frameBytes } = store;
  const identityKey = store.identityKey && keyOfSource(store.identityKey, source);
  const sessionListener = {
    ...listener,
    observation: (channel: string, bytes: Uint8Array, at: Timestamp) => lastSeen.read(channel, bytes, at),
    observed: observedPublisher(store.nats),
    session: (id: string) => responses.sessionFound(id),
    committed: (index: bigint) => responses.committed(index),
  };
  const { requireRedact, times: { replay } = {} } = options;
  const textTtl = options.textTtl?.(store.workspace);
  const opening = {
    log,
    source,
    normalizer,
    hello,
    signal: live,
    listener: sessionListener,
    frameBytes,
    textTtl,
    requireRedact,
    replay,
    identityKey,
  };
  const { imported } = hello;
  const admit = (event: Event) => {
    if (event.detail?.$case === "session_detail") assertRedacted(event.detail.value.redact, options);
  };
  const opened =
    imported === undefined ? openSessionRecorder(opening) : openImport({ ...opening, imported, memory, admit });
  return opened.catch((cause: unknown) => {
    throw signal.aborted ? notReady("recording was stopped") : cause;
  });
}

/** Ends the answers when the recording has to end before the tap's stream does. */
function endWhenOver(
  responses: PushResponses,
  session: Intake,
  { source, signal, lost }: AdmittedPush,
  over: AbortSignal,
): void {
  signal.addEventListener("abort", () => responses.end(notReady("recording was stopped")), { signal: over });
  lost.addEventListener("abort", () => responses.end(notReady(`${source} was taken by another recorder`)), {
    signal: over,
  });
  void session.ended.then((cause) => {
    if (!over.aborted) responses.end(cause);
  });
  if (signal.aborted || lost.aborted) responses.end(notReady("recording was stopped"));
}

function answersOf(
  { options: { logger, times }, store: { nats }, source, normalizer }: AdmittedPush,
  recorder: Extract<Intake, { kind: "live" }>,
  responses: PushResponses,
  signal: AbortSignal,
): readonly (() => void)[] {
  const answering = { nats, source, normalizer, recorder, responses, logger, signal, loopStartMs: times?.loopStartMs };
  return [answerControl(answering), adoptStates(answering)];
}

/** A tap cannot resolve a lost race. It pushes again, and then the log shows how far it got. */
function toPushError(cause: unknown, source: SourceName): unknown {
  return cause instanceof LostRaceError ? notReady(`${source} was written by another recorder`, cause) : cause;
}
