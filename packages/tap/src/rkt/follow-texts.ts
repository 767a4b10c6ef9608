import { type ClientReadableStream, type StatusObject, status } from "@grpc/grpc-js";
import { GetLogsRequest, type Pod, PodState, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import type { PolledConnection } from "../polling/connection.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import { DelayedTexts, type PodText } from "./delayed-texts.ts";
import type { AppOutput, HostOutput } from "./host-output.ts";
import { linesOf, textOf, timeOf } from "./text-lines.ts";

export type TextFollowerOptions = {
  readonly connection: Pick<PolledConnection, "open">;
  readonly memory: HostOutput;
  readonly emit: EmitResult;
  readonly pace?: TextPace;
};

/** A text's stream on this connection. */
type TextStream = {
  /** Undefined after the stream has ended by itself. */
  readonly call: ClientReadableStream<Buffer> | undefined;
  receivedAt: number;
  /** When the pod was listed as not running for the first time since it ran. */
  endedAt: number | undefined;
  /** How often the stream has ended by itself since its last message. */
  failures: number;
  retryAt: number;
};

/** In ms. */
export type TextPace = {
  /** After a pod has ended, the last lines have come by then. rkt itself never ends a stream. */
  readonly quiet: number;
  /** Doubles with each failure. */
  readonly firstRetry: number;
  /** A pod's messages are emitted this much later than its apps'. */
  readonly podDelay: number;
  /** One list may omit a pod that exists. */
  readonly forgetMissing: number;
};

const defaultPace: TextPace = { quiet: 5_000, firstRetry: 1_000, podDelay: 2_000, forgetMissing: 60_000 };
const longestRetryMs = 30_000;
/** A pod that has just started has no journal yet. One without a journal after this many attempts gets none. */
const journalAttempts = 5;

/**
 * Follows the output of a connection's pods. Each app has a stream, because a line does not name its app, and the pod has
 * one, which repeats all of them and has the output of the pod's own services.
 */
export class TextFollower {
  readonly #options: TextFollowerOptions;
  readonly #pace: TextPace;
  readonly #streams = new Map<string, TextStream>();
  readonly #podTexts: DelayedTexts;
  #isClosed = false;

  constructor(options: TextFollowerOptions) {
    this.#options = options;
    this.#pace = options.pace ?? defaultPace;
    this.#podTexts = new DelayedTexts(this.#pace.podDelay, (text) => this.#emit(text));
  }

  /** Takes the current list of pods: opens the streams of new pods and closes those of pods that have ended. */
  update(pods: readonly Pod[]): void {
    if (this.#isClosed) return;
    const { memory } = this.#options;
    const states = new Map(pods.map(({ id, state }) => [id, state]));
    memory.update(pods);
    for (const [key, output] of memory.texts) this.#updateText(key, output, states.get(output.pod));
  }

  /** Emits what is delayed and closes all streams, at the end of the connection. */
  close(): void {
    this.#isClosed = true;
    this.#podTexts.flush();
    for (const [key, stream] of this.#streams) this.#closeStream(key, stream);
  }

  #updateText(key: string, output: AppOutput, state: PodState | undefined): void {
    const now = performance.now();
    const isListed = state !== undefined;
    output.missingSince = isListed ? undefined : (output.missingSince ?? now);
    const stream = this.#streams.get(key);
    if (stream?.call !== undefined) {
      stream.endedAt = state === PodState.POD_STATE_RUNNING ? undefined : (stream.endedAt ?? now);
      if (stream.endedAt === undefined) return;
      if (now - Math.max(stream.endedAt, stream.receivedAt) < this.#pace.quiet) return;
      output.isFinished = true;
      this.#closeStream(key, stream);
    } else if (isListed && !output.isFinished && now >= (stream?.retryAt ?? 0)) {
      this.#openStream(key, output, stream?.failures ?? 0);
    } else if (output.missingSince !== undefined && now - output.missingSince >= this.#pace.forgetMissing) {
      this.#options.memory.texts.delete(key);
      this.#streams.delete(key);
    }
  }

  #openStream(key: string, output: AppOutput, failures: number): void {
    const { connection, memory } = this.#options;
    const range = { lines: 0, follow: true, since_time: memory.since(output), until_time: 0n };
    const request = GetLogsRequest.encode({ pod_id: output.pod, app_name: output.app, ...range }).finish();
    const call = connection.open(PublicAPIService.getLogs.path, request);
    const stream: TextStream = { call, receivedAt: performance.now(), endedAt: undefined, failures, retryAt: 0 };
    let isReopened = output.wasOpened;
    output.wasOpened = true;
    this.#streams.set(key, stream);
    call.on("data", (bytes: Buffer) => {
      if (this.#streams.get(key) !== stream) return;
      stream.receivedAt = performance.now();
      stream.failures = 0;
      if (output.app === "") this.#podTexts.add({ output, bytes, isReopened });
      else this.#emit({ output, bytes, isReopened });
      isReopened = false;
    });
    call.on("status", (end: StatusObject) => {
      if (this.#streams.get(key) === stream) this.#streamEnded(key, stream, end);
    });
  }

  #streamEnded(key: string, stream: TextStream, { code, details }: StatusObject): void {
    if (code === status.UNIMPLEMENTED || details === withoutLogs) {
      this.close();
      this.#options.emit({ $case: "failed", value: { code, message: details } });
      return;
    }
    const failures = stream.failures + 1;
    const wait = Math.min(this.#pace.firstRetry * 2 ** (failures - 1), longestRetryMs);
    const isFinal = details.startsWith(withoutJournal) && failures >= journalAttempts;
    const retryAt = isFinal ? Number.POSITIVE_INFINITY : performance.now() + wait;
    this.#streams.set(key, { ...stream, call: undefined, failures, retryAt });
  }

  #closeStream(key: string, { call }: TextStream): void {
    this.#streams.delete(key);
    call?.cancel();
  }

  #emit({ output, bytes, isReopened: reopened }: PodText): void {
    const { pod, app } = output;
    const second = lastSecond(bytes);
    if (second > output.second) output.second = second;
    this.#options.emit({ $case: "text", value: { pod, app, bytes, reopened } });
  }
}

const withoutLogs = "rkt built without logging support";
const withoutJournal = "logging unsupported for pod";

function lastSecond(response: Buffer): bigint {
  let last = 0n;
  for (const line of linesOf(response) ?? []) {
    const time = timeOf(textOf(line)) ?? 0n;
    if (time > last) last = time;
  }
  return timestampOfNanos(last).seconds;
}
