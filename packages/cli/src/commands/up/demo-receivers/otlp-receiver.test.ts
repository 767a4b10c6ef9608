import { Span_SpanKind } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import { expect, it } from "vitest";
import { lineOf } from "./otlp-receiver.ts";

const attributes = (of: Readonly<Record<string, string>>) =>
  Object.entries(of).map(([key, value]) => ({
    key,
    value: { value: { $case: "string_value", value } },
    key_strindex: 0,
  }));

const line = (status: { readonly message: string }) => {
  const times = { start_time_unix_nano: 0n, end_time_unix_nano: 2_100_000_000n };
  const spans = [
    {
      ...times,
      name: "RUN shop",
      kind: Span_SpanKind.SPAN_KIND_SERVER,
      attributes: attributes({ "cicd.pipeline.result": "failure", "error.type": "LOOP" }),
    },
    {
      ...times,
      name: "build web",
      kind: Span_SpanKind.SPAN_KIND_INTERNAL,
      attributes: attributes({ "error.type": "BUILD_UNKNOWN" }),
      status,
    },
  ];
  const resource = {
    attributes: attributes({
      "tapedeck.developer": "bob",
      "cicd.pipeline.run.url.full": "http://127.0.0.1:7052/loops/1",
    }),
  };
  return lineOf({ resource, scope_spans: [{ spans }] } as never);
};

it("a trace is printed with its developer, and why a task failed", () => {
  const end = "http://127.0.0.1:7052/loops/1";
  expect(line({ message: "undefined:\n\u001b[31mtotal" })).toEqual([
    `bob RUN shop: failure in 2.1 s, 1 task (build web: undefined: total), ${end}`,
  ]);
  expect(line({ message: "" })).toEqual([`bob RUN shop: failure in 2.1 s, 1 task (build web: BUILD_UNKNOWN), ${end}`]);
  expect(line({ message: "x".repeat(500) })[0]?.length).toBeLessThan(250);
});
