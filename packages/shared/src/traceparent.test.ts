import { expect, it } from "vitest";
import { parseTraceParent } from "./traceparent.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";

it.each([
  [`00-${traceId}-${spanId}-01`, 1],
  [`00-${traceId}-${spanId}-00`, 0],
  [`cc-${traceId}-${spanId}-01-what-comes-later`, 1],
])("reads %s", (text, flags) => {
  expect(parseTraceParent(text)).toEqual({ traceId, spanId, flags });
});

it.each([
  undefined,
  "",
  "00",
  `ff-${traceId}-${spanId}-01`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${"0".repeat(32)}-${spanId}-01`,
  `00-${traceId}-${"0".repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  ` 00-${traceId}-${spanId}-01`,
])("takes %s for no parent", (text) => {
  expect(parseTraceParent(text)).toBeUndefined();
});
