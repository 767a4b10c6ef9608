import type { GetLogsRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, justBefore, laterOf, logStart, messagesBefore, type Offset } from "@tapedeck/shared/log/offset";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import { eventsIn, type ScopeDeps, type SessionScope } from "../session-scope.ts";
import { loggingUnsupported, unresolvedPod } from "./errors.ts";
import { isLineOf, type LogLine, logLine } from "./log-lines.ts";

/** The pod whose lines are asked for. `isListed` is false for a whole id of a pod that is not, or no longer, on the host. */
export type LogPod = { readonly id: string; readonly isListed: boolean };

export type PodLogsDeps = ScopeDeps & {
  /** For the recorded lines, which are held until the client has taken them. */
  readonly largeAnswers: TimedSemaphore;
};

export type LogsRequest = {
  readonly scope: SessionScope;
  readonly pod: LogPod;
  readonly request: GetLogsRequest;
  /** The log's end when the call was accepted. */
  readonly lastOffset: Offset;
};

/** The largest answer. Twice as much is held while its lines are selected. */
const maxBytes = 32 << 20;

/** How many messages of the log the search for the last N lines covers at first; it grows until they are found. */
const firstWindow = 256;

/** How far the clocks of host and log may differ: the search starts this much before `since_time`. */
const clockSlackMs = 3_600_000;

/**
 * A pod's lines, each message a v1alpha.GetLogsResponse: with `follow` one for each line, the recorded ones first, then
 * live and without an end; otherwise one with all of them. Recorded lines are ordered by their own times, live ones by
 * arrival. `since_time` wins over `lines`. A negative number, or a `since_time` in the future, selects no recorded line.
 * `until_time`, which rkt ignores, excludes lines that are not before it, and ends no stream.
 *
 * Cost: the log indexes lines by source and channel, not by pod, so the lines of all pods in the range that is read pass
 * through here; only the answer is held. The range is the whole session for all lines, as far back from the end as needed
 * for the last N, in windows that grow, and from that time on for `since_time`.
 * @throws UpstreamError, TapedeckError limit_exceeded
 */
export function podLogs(
  deps: PodLogsDeps,
  request: LogsRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  return new PodLogReader(deps, request, signal).messages();
}

class PodLogReader {
  readonly #deps: PodLogsDeps;
  readonly #scope: SessionScope;
  readonly #pod: LogPod;
  readonly #request: GetLogsRequest;
  readonly #signal: AbortSignal;
  readonly #subjects: readonly string[];
  /** Offset at which recorded lines end and live ones begin. */
  readonly #endOffset: Offset;
  /** A line of the pod was read, whether or not it was selected. */
  #hasLines = false;

  constructor(deps: PodLogsDeps, { scope, pod, request, lastOffset }: LogsRequest, signal: AbortSignal) {
    this.#deps = deps;
    this.#scope = scope;
    this.#pod = pod;
    this.#request = request;
    this.#signal = signal;
    this.#subjects = [eventSubject(scope.source, "logs", "log.written")];
    const isEnded = scope.only?.ended === true;
    this.#endOffset = isEnded ? earlierOf(lastOffset, deps.positions.own(scope.only.end_position)) : lastOffset;
  }

  async *messages(): AsyncGenerator<Uint8Array, void> {
    yield* this.#recorded();
    if (!this.#request.follow || this.#signal.aborted) return;
    const from = { afterOffset: this.#endOffset, subjects: this.#subjects };
    for await (const recorded of eventsIn(this.#deps, this.#scope, from, { signal: this.#signal })) {
      const line = this.#lineOf(recorded);
      if (line !== undefined) yield line.bytes;
    }
  }

  async *#recorded(): AsyncGenerator<Uint8Array, void> {
    const release = await this.#deps.largeAnswers.acquire(this.#signal);
    try {
      const lines = await this.#recordedLines();
      if (this.#signal.aborted) return;
      if (lines.length === 0) await this.#assertRecorded();
      // Encoded messages in a row are one message: repeated fields add up.
      if (!this.#request.follow) yield Buffer.concat(lines.map(({ bytes }) => bytes));
      else for (const { bytes } of lines) yield bytes;
    } finally {
      release();
    }
  }

  async #recordedLines(): Promise<readonly LogLine[]> {
    const { since_time, lines: count } = this.#request;
    if (since_time < 0n || Number(since_time) * 1_000 > Date.now()) return [];
    if (since_time === 0n && count < 0) return [];
    if (since_time === 0n && count > 0) return this.#lastLines(count);
    const earliest = new Date(Number(since_time) * 1_000 - clockSlackMs);
    const firstSince = () => this.#deps.log().firstSince(earliest);
    const first = since_time === 0n ? logStart : await firstSince();
    if (first === undefined) return [];
    const { lines } = await this.#linesAfter(
      laterOf(this.#scope.afterOffset, justBefore(first)),
      Number.POSITIVE_INFINITY,
    );
    return lines;
  }

  /** Searches as /api/v1/events does for the newest N. */
  async #lastLines(count: number): Promise<readonly LogLine[]> {
    const { afterOffset } = this.#scope;
    for (let window = firstWindow; ; window *= 8) {
      const begin = laterOf(afterOffset, messagesBefore(this.#endOffset, window));
      const { lines, startedAt } = await this.#linesAfter(begin, count);
      if (begin === afterOffset || this.#signal.aborted) return lines;
      // The lines of one app are recorded in order. Those of several apps are not when some were reported late, but no
      // line before the window is later than the window's beginning.
      const isComplete = this.#request.app_name !== "" || (lines[0]?.at ?? 0) >= startedAt;
      if (lines.length >= count && isComplete) return lines;
    }
  }

  /** The last `max` lines by time after an offset. `startedAt`: when the first event was recorded, in microseconds. */
  async #linesAfter(afterOffset: Offset, max: number): Promise<{ lines: readonly LogLine[]; startedAt: number }> {
    let newest: LogLine[] = [];
    let bytes = 0;
    let startedAt: number | undefined;
    const trim = () => {
      newest = newest.toSorted((a, b) => a.at - b.at).slice(Math.max(0, newest.length - max));
      bytes = newest.reduce((sum, line) => sum + line.bytes.byteLength, 0);
    };
    for await (const recorded of this.#recordedAfter(afterOffset)) {
      startedAt ??= (recorded.recordedAt.getTime() + 1) * 1_000;
      const line = this.#lineOf(recorded);
      if (line === undefined) continue;
      newest.push(line);
      bytes += line.bytes.byteLength;
      if (newest.length >= 2 * max + firstWindow || bytes > 2 * maxBytes) trim();
      if (bytes > maxBytes && newest.length <= max) throw tooLarge();
    }
    trim();
    return { lines: newest, startedAt: startedAt ?? 0 };
  }

  async *#recordedAfter(afterOffset: Offset): AsyncGenerator<RecordedEvent, void> {
    if (this.#endOffset <= afterOffset) return;
    const { only } = this.#scope;
    const history = this.#deps.log().history({ afterOffset, subjects: this.#subjects }, this.#endOffset, this.#signal);
    for await (const recorded of history) {
      if (only === undefined || recorded.event.session === only.session) yield recorded;
    }
  }

  #lineOf({ event }: RecordedEvent): LogLine | undefined {
    if (!isLineOf(event, this.#pod.id)) return undefined;
    this.#hasLines = true;
    return logLine(event, this.#request);
  }

  /**
   * Throws why there is no line. A pod with a journal has at least the lines of its own services in it, so a pod without a
   * recorded line has no journal. An app that wrote nothing, or nothing in that time, is not an error.
   */
  async #assertRecorded(): Promise<void> {
    if (this.#hasLines) return;
    for await (const { event } of this.#recordedAfter(this.#scope.sessionStart)) {
      if (isLineOf(event, this.#pod.id)) return;
    }
    if (this.#signal.aborted) return;
    throw this.#pod.isListed ? loggingUnsupported(this.#request.pod_id) : unresolvedPod();
  }
}

function tooLarge(): TapedeckError {
  const message = `these lines exceed ${maxBytes >> 20} MiB: request the last ones with \`lines\` or \`since_time\``;
  return new TapedeckError("limit_exceeded", message, { field: "lines" });
}
