/** A span of another system, as W3C Trace Context writes it: https://www.w3.org/TR/trace-context/#traceparent-header */
export type TraceParent = { readonly traceId: string; readonly spanId: string; readonly flags: number };

/** The name of a session's label, and of the variable in a command's environment. */
export const traceParentLabel = "traceparent";
export const traceParentVariable = "TRACEPARENT";

/** What a later version has behind it is not known here. */
export const traceParentLength = 55;

/** Undefined for a text that is not valid. A version that is not known yet may have more at its end. */
export function parseTraceParent(text: string | undefined): TraceParent | undefined {
  const found = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text ?? "");
  if (found === null) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", more] = found;
  const isValid = version !== "ff" && !(version === "00" && more !== undefined) && !isZero(traceId) && !isZero(spanId);
  return isValid ? { traceId, spanId, flags: Number.parseInt(flags, 16) } : undefined;
}

function isZero(hex: string): boolean {
  return /^0+$/.test(hex);
}
