import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { TestResult } from "../definition.ts";
import type { FormatReader, FormattedSink, SinkRequest } from "../format/format.ts";
import { formatOf } from "../format/formats.ts";
import type { SinkSettings } from "../settings.ts";
import { HttpTarget } from "../target/http-target.ts";
import { classOf } from "./answers.ts";
import type { ActiveSink } from "./running-sinks.ts";

type ByHandSettings = Pick<SinkSettings, "allowed" | "page">;

/** Sends a request without an event, once. */
export function testSink(sink: ActiveSink, settings: ByHandSettings, signal: AbortSignal): Promise<TestResult> {
  return send(
    sink,
    { epoch: "", requests: async (formatted) => [formatOf(sink.definition).test(new Date(), formatted)] },
    settings,
    signal,
  );
}

/** Sends a parked event, once. */
export async function retryParked(
  sink: ActiveSink,
  { log, offset }: { readonly log: FormatReader & Pick<LogReader, "epoch">; readonly offset: Offset },
  settings: ByHandSettings,
  signal: AbortSignal,
): Promise<TestResult> {
  const events = (await Array.fromAsync(log.read([offset], signal))).map((recorded) => ({
    recorded,
    position: formatPosition({ epoch: log.epoch, offset }),
  }));
  const format = formatOf(sink.definition);
  const requests = async (formatted: FormattedSink) => format.open(formatted, log).requests(events, signal);
  return send(sink, { epoch: log.epoch, requests }, settings, signal);
}

type ToSend = { readonly epoch: string; readonly requests: (sink: FormattedSink) => Promise<readonly SinkRequest[]> };

async function send(
  { workspace, sink: name, definition }: ActiveSink,
  { epoch, requests }: ToSend,
  settings: ByHandSettings,
  signal: AbortSignal,
): Promise<TestResult> {
  const { mode, secret, headers, target: url } = definition;
  const format = formatOf(definition);
  const sink = { workspace, name, mode, secret, epoch, page: settings.page };
  using target = new HttpTarget({ url, allowed: settings.allowed });
  let status: number | null = null;
  for (const request of await requests(sink)) {
    const at = new Date();
    const body = Buffer.from(request.body);
    const all = { ...request.headers, ...headers, ...format.headersOf?.({ id: request.id, body }, at, sink) };
    const answer = await target.post({ body, headers: all }, signal);
    const result = classOf(answer, at, format);
    status = answer.type === "answer" ? answer.status : null;
    if (result.type === "refused") return { accepted: false, status, error: result.error };
  }
  return { accepted: true, status, error: null };
}
