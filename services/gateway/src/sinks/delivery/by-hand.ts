import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, ReadFrom } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { formatPosition } from "@tapedeck/shared/log/position";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { SentResult } from "../definition.ts";
import type { CauseOf, FormatReader, FormattedSink, SinkRequest } from "../format/format.ts";
import { formatOf } from "../format/formats.ts";
import type { SinkSettings } from "../settings.ts";
import { HttpTarget } from "../target/http-target.ts";
import { type AnswerClass, classOf, outcomeOf, unwritten } from "./answers.ts";
import type { ActiveSink } from "./running-sinks.ts";
import { continued, startOffset } from "./start-offset.ts";
import { defaultSinkTimes } from "./times.ts";

type ByHandDeps = { readonly settings: Pick<SinkSettings, "allowed" | "page">; readonly causeOf: CauseOf };

/** Sends a request without an event, once. */
export async function testSink(sink: ActiveSink, deps: ByHandDeps, signal: AbortSignal): Promise<SentResult> {
  const requests = async (formatted: FormattedSink) => [formatOf(sink.definition).test(new Date(), formatted)];
  return send(sink, { epoch: "", requests }, deps, signal);
}

/** What may happen to the events that the sink delivers, from its start on and next; null: nothing of note. */
export async function warningOf(
  { workspace, definition }: ActiveSink,
  { log, cursor }: { readonly log: LogReader; readonly cursor: string | undefined },
  signal: AbortSignal,
): Promise<string | null> {
  const { ofOldEvents } = formatOf(definition);
  if (ofOldEvents === undefined) return null;
  const subjects = toSubjects(definition.filter, workspace);
  const offsets = [
    ...(cursor === undefined ? [] : [continued(log, cursor)]),
    ...(definition.start === "now" ? [] : [await startOffset(log, definition.start)]),
  ];
  for (const afterOffset of offsets) if (await isOld(log, { afterOffset, subjects }, signal)) return ofOldEvents;
  return null;
}

async function isOld(log: LogReader, from: ReadFrom, signal: AbortSignal): Promise<boolean> {
  const { lastOffset } = await log.bounds();
  try {
    for await (const { event, recordedAt } of log.history(from, lastOffset, signal)) {
      const at = event.occurred_at === undefined ? recordedAt.getTime() : msOfTimestamp(event.occurred_at);
      return Date.now() - at > oldMs;
    }
    return false;
  } catch (error) {
    // What follows it is gone, and so was old.
    if (error instanceof OutOfRangeError) return true;
    throw error;
  }
}

const oldMs = 24 * 3_600_000;

/** Sends a parked event, once. One that its format can't write is refused. */
export async function retryParked(
  sink: ActiveSink,
  { log, offset }: { readonly log: FormatReader & Pick<LogReader, "epoch">; readonly offset: Offset },
  deps: ByHandDeps,
  signal: AbortSignal,
): Promise<SentResult> {
  const events = (await Array.fromAsync(log.read([offset], signal))).map((recorded) => ({
    recorded,
    position: formatPosition({ epoch: log.epoch, offset }),
  }));
  const format = formatOf(sink.definition);
  const requests = async (formatted: FormattedSink) =>
    format.open(formatted, log, { ...opening, causeOf: deps.causeOf }).requests(events, signal);
  return send(sink, { epoch: log.epoch, requests }, deps, signal);
}

const opening = { memory: undefined, intervalMs: 0, lateMs: defaultSinkTimes.lateMs };

type ToSend = { readonly epoch: string; readonly requests: (sink: FormattedSink) => Promise<readonly SinkRequest[]> };

async function send(
  { workspace, sink: name, definition }: ActiveSink,
  { epoch, requests }: ToSend,
  deps: ByHandDeps,
  signal: AbortSignal,
): Promise<SentResult> {
  const { mode, filter, live = false, template, secret, headers, target: url } = definition;
  const format = formatOf(definition);
  const sink = { workspace, name, mode, filter, live, secret, epoch, page: deps.settings.page, template };
  const made = await requests(sink).catch(unwritten);
  if ("type" in made) return sentResult(made, null);
  // What is read after the caller has left is not all that there is.
  if (signal.aborted) return { accepted: false, outcome: "away", status: null, error: "stopped" };
  using target = new HttpTarget({ url, allowed: deps.settings.allowed });
  let status: number | null = null;
  for (const request of made) {
    const at = new Date();
    const body = Buffer.from(request.body);
    const all = { ...request.headers, ...headers, ...format.headersOf?.({ id: request.id, body }, at, sink) };
    const answer = await target.post({ body, headers: all }, signal);
    const result = classOf(answer, at, format);
    status = answer.type === "answer" ? answer.status : null;
    if (result.type === "refused") return sentResult(result, status);
  }
  return sentResult({ type: "accepted" }, status);
}

function sentResult(answer: AnswerClass, status: number | null): SentResult {
  const error = answer.type === "refused" ? answer.error : null;
  return { accepted: answer.type === "accepted", outcome: outcomeOf(answer), status, error };
}
