import type { IncomingHttpHeaders } from "node:http";
import { gunzipSync } from "node:zlib";
import { ExportTraceServiceRequest } from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import type { KeyValue } from "@tapedeck/proto/opentelemetry/proto/common/v1/common";
import type { Span } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";

export type ReceivedAttributes = Readonly<Record<string, string | boolean | number>>;

export type ReceivedSpan = {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it has none. */
  readonly parentId: string;
  readonly name: string;
  readonly span: Span;
  readonly attributes: ReceivedAttributes;
  readonly resource: ReceivedAttributes;
};

type Received = { readonly headers: IncomingHttpHeaders; readonly bytes: Buffer };

/** The spans of an export over OTLP/HTTP; none of any other request. */
export function spansOf(request: Received): readonly ReceivedSpan[] {
  if (request.headers["content-type"] !== "application/x-protobuf") return [];
  const { resource_spans } = ExportTraceServiceRequest.decode(gunzipSync(request.bytes));
  return resource_spans.flatMap(({ resource, scope_spans }) =>
    scope_spans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: hex(span.trace_id),
        spanId: hex(span.span_id),
        parentId: hex(span.parent_span_id),
        name: span.name,
        span,
        attributes: attributesOf(span.attributes),
        resource: attributesOf(resource?.attributes ?? []),
      })),
    ),
  );
}

export function isEmptyExport(request: Received): boolean {
  return request.headers["content-type"] === "application/x-protobuf" && spansOf(request).length === 0;
}

export function attributesOf(attributes: readonly KeyValue[]): ReceivedAttributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const one = value?.value;
      if (one?.$case === "int_value") return [key, Number(one.value)];
      return [key, one?.$case === "string_value" || one?.$case === "bool_value" ? one.value : String(one?.$case)];
    }),
  );
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
