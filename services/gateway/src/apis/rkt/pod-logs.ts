import { type GetLogsRequest, GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Recorded } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { WaitingLine } from "../../limits/semaphore.ts";
import { eventsIn, type ScopeDeps, type SessionScope } from "../session-scope.ts";
import { loggingUnsupported, unresolvedPod } from "./errors.ts";

/** Whose lines: `isListed` is false for one that was asked for by its whole id and is not on the host (any more). */
export type LogPod = { readonly id: string; readonly isListed: boolean };

export type PodLogsDeps = ScopeDeps & {
  /** For the recorded lines, which are held until the client has taken them. */
  readonly largeAnswers: WaitingLine;
};

export type LogsRequest = {
  readonly scope: SessionScope;
  readonly pod: LogPod;
  readonly request: GetLogsRequest;
  /** The log's end when the call was accepted. */
  readonly lastSeq: number;
};

/** One line, as the v1alpha.GetLogsResponse that it was recorded in. `at`: microseconds since 1970, as journald has it. */
type Line = { readonly at: number; readonly bytes: Uint8Array };

/** The lines of one answer together; twice as much is held while they are picked. */
const mostBytes = 32 << 20;

/** How far the last N lines are looked for at first, in messages of the log; it grows until they are found. */
const firstWindow = 4_096;

/** How much the clocks of host and log may differ: a line is looked for only where it can have been recorded. */
const clockSlackMs = 3_600_000;

/**
 * A pod's lines, each message a v1alpha.GetLogsResponse: with `follow` one for each line, the recorded ones first, then
 * live and without an end; else one with all of them. Ordered by their own times; live as they come. `since_time` wins
 * over `lines`; a negative number, or a `since_time` to come, gives no recorded line. `until_time`, which rkt ignores,
 * leaves out what is not before it, and ends no stream.
 *
 * What it costs: the log knows a line's source and channel, not its pod, so the lines of all pods in the stretch that is
 * read pass through here; what is kept is the answer. All lines: the whole session. The last N: back from the end as far
 * as they reach, in windows that grow. From `since_time` on: from that time.
 * @throws UpstreamError, TapedeckError limit_exceeded
 */
export async function* podLogs(
  deps: PodLogsDeps,
  { scope, pod, request, lastSeq }: LogsRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const { log, positions } = deps;
  const subjects = [eventSubject(scope.source, "logs", "log.written")];
  const end = scope.only?.ended === true ? Math.min(lastSeq, positions.own(scope.only.end_position)) : lastSeq;
  /** A line of the pod was read, whatever became of it. */
  let isKnown = false;
  yield* recorded();
  if (!request.follow || signal.aborted) return;
  for await (const event of eventsIn(deps, scope, { afterSeq: end, subjects }, { signal })) {
    const line = lineOf(event);
    if (line !== undefined) yield line.bytes;
  }

  async function* recorded(): AsyncGenerator<Uint8Array, void> {
    const endTurn = await deps.largeAnswers.take(signal);
    try {
      const lines = await recordedLines();
      if (signal.aborted) return;
      if (lines.length === 0) await assertRecorded();
      // Encoded messages one after the other are one message: repeated fields add up.
      if (!request.follow) yield Buffer.concat(lines.map(({ bytes }) => bytes));
      else for (const { bytes } of lines) yield bytes;
    } finally {
      endTurn();
    }
  }

  async function recordedLines(): Promise<readonly Line[]> {
    const { since_time, lines: asked } = request;
    if (since_time < 0n || Number(since_time) * 1_000 > Date.now()) return [];
    if (since_time === 0n && asked < 0) return [];
    if (since_time === 0n && asked > 0) return lastLines(asked);
    const earliest = new Date(Number(since_time) * 1_000 - clockSlackMs);
    const first = since_time === 0n ? 0 : ((await log().firstSince(earliest)) ?? end + 1);
    return (await linesAfter(Math.max(scope.afterSeq, first - 1), Number.POSITIVE_INFINITY)).lines;
  }

  /** As /api/v1/events finds the newest N. */
  async function lastLines(count: number): Promise<readonly Line[]> {
    for (let window = firstWindow; ; window *= 8) {
      const begin = Math.max(scope.afterSeq, end - window);
      const { lines, begun } = await linesAfter(begin, count);
      if (begin === scope.afterSeq || signal.aborted) return lines;
      // An app's lines are recorded in their order. Those of several are not, where some were told late; but none before
      // the window can be later than when the window began.
      const isAll = request.app_name !== "" || (lines[0]?.at ?? 0) >= begun;
      if (lines.length >= count && isAll) return lines;
    }
  }

  /** The last `most` lines by time after a sequence; `begun`: when the first event there was recorded, in microseconds. */
  async function linesAfter(afterSeq: number, most: number): Promise<{ lines: readonly Line[]; begun: number }> {
    let kept: Line[] = [];
    let bytes = 0;
    let begun: number | undefined;
    const settle = () => {
      kept = kept.toSorted((a, b) => a.at - b.at).slice(Math.max(0, kept.length - most));
      bytes = kept.reduce((sum, line) => sum + line.bytes.byteLength, 0);
    };
    for await (const recorded of read(afterSeq)) {
      begun ??= (recorded.recordedAt.getTime() + 1) * 1_000;
      const line = lineOf(recorded);
      if (line === undefined) continue;
      kept.push(line);
      bytes += line.bytes.byteLength;
      if (kept.length >= 2 * most + firstWindow || bytes > 2 * mostBytes) settle();
      if (bytes > mostBytes && kept.length <= most) throw tooMuch();
    }
    settle();
    return { lines: kept, begun: begun ?? 0 };
  }

  async function* read(afterSeq: number) {
    if (end <= afterSeq) return;
    for await (const recorded of log().history({ afterSeq, subjects }, end, signal)) {
      if (scope.only === undefined || recorded.event.session === scope.only.session) yield recorded;
    }
  }

  function lineOf({ event }: Recorded): Line | undefined {
    if (!isOfPod({ event }) || event.detail?.$case !== "text") return undefined;
    isKnown = true;
    const { container, text } = event.detail.value;
    if (request.app_name !== "" && container !== request.app_name) return undefined;
    const { seconds, nanos } = event.occurred_at ?? event.observed_at ?? { seconds: 0n, nanos: 0 };
    if (seconds < request.since_time) return undefined;
    if (request.until_time !== 0n && seconds >= request.until_time) return undefined;
    const whole = event.original?.bytes ?? new Uint8Array();
    return {
      at: Number(seconds) * 1_000_000 + Math.floor(nanos / 1_000),
      bytes: whole.byteLength > 0 ? whole : GetLogsResponse.encode({ lines: [text] }).finish(),
    };
  }

  function isOfPod({ event }: Pick<Recorded, "event">): boolean {
    return event.kind === "log.written" && event.detail?.$case === "text" && event.detail.value.pod === pod.id;
  }

  /**
   * Why there is nothing. A pod with a journal has lines in it, those of its own services at least: one of which none is
   * recorded has no journal. That an app wrote nothing, or nothing of that time, is no error.
   */
  async function assertRecorded(): Promise<void> {
    if (isKnown) return;
    for await (const recorded of read(scope.sessionStart)) if (isOfPod(recorded)) return;
    if (!signal.aborted) throw pod.isListed ? loggingUnsupported(request.pod_id) : unresolvedPod();
  }
}

function tooMuch(): TapedeckError {
  const message = `so many lines are larger than ${mostBytes >> 20} MiB: ask for the last ones by \`lines\`, or by \`since_time\``;
  return new TapedeckError("limit_exceeded", message, { field: "lines" });
}
