import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { ExportTraceServiceRequest } from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import type { KeyValue } from "@tapedeck/proto/opentelemetry/proto/common/v1/common";
import { type ResourceSpans, type Span, Span_SpanKind } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import { durationText } from "../../../display/durations.ts";
import { plainLine } from "../../../display/plain-line.ts";
import type { DemoReceiver } from "./receiver.ts";

/** Takes traces over OTLP/HTTP, and prints a line for each. */
export async function startOtlpReceiver(printLine: (line: string) => void): Promise<DemoReceiver> {
  const server = createServer((request, response) => {
    linesOf(request).then(
      (lines) => {
        for (const line of lines) printLine(`otlp: ${line}`);
        response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
      },
      () => response.writeHead(400).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    name: "otlp",
    sink: { target: `http://${host}/v1/traces`, format: "otlp" },
    host,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function linesOf(request: IncomingMessage): Promise<readonly string[]> {
  const body = gunzipSync(Buffer.concat(await request.toArray()));
  return ExportTraceServiceRequest.decode(body).resource_spans.flatMap(lineOf);
}

/** "alice RUN shop: failure in 2.1 s, 4 tasks (build web: undefined: total), http://127.0.0.1:7052/loops/…" */
export function lineOf({ resource, scope_spans }: ResourceSpans): readonly string[] {
  const spans = scope_spans.flatMap((scope) => scope.spans);
  const root = spans.find(({ kind }) => kind === Span_SpanKind.SPAN_KIND_SERVER);
  if (root === undefined) return [];
  const ms = Number(root.end_time_unix_nano - root.start_time_unix_nano) / 1_000_000;
  const tasks = spans.filter((span) => span !== root);
  const failed = tasks.flatMap((task) => {
    const why = errorOf(task);
    return why === "" ? [] : [`${task.name}: ${why}`];
  });
  const reasons = failed.length > 0 ? failed : [errorOf(root)].filter((why) => why !== "");
  const count = `${tasks.length} ${tasks.length === 1 ? "task" : "tasks"}`;
  const developer = textIn(resource?.attributes ?? [], "tapedeck.developer");
  const result = `${developer} ${root.name}: ${resultOf(root)} in ${durationText(ms)}, ${count}`;
  const url = textIn(resource?.attributes ?? [], "cicd.pipeline.run.url.full");
  return [`${result}${reasons.length === 0 ? "" : ` (${reasons.join(", ")})`}, ${url}`];
}

const maxMessage = 120;

/** Why a span failed, as its tool says it, which may be long; empty: it did not. */
function errorOf({ attributes, status }: Span): string {
  const type = textIn(attributes, "error.type");
  const message = plainLine(status?.message ?? "");
  if (type === "" || message === "") return type;
  return message.length <= maxMessage ? message : `${message.slice(0, maxMessage - 1)}…`;
}

function resultOf({ attributes }: Span): string {
  return textIn(attributes, "cicd.pipeline.result");
}

function textIn(attributes: readonly KeyValue[], key: string): string {
  const value = attributes.find((one) => one.key === key)?.value?.value;
  return value?.$case === "string_value" ? value.value : "";
}
