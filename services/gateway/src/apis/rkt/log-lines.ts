import { type GetLogsRequest, GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/shared/events/codec";

/** A line in the v1alpha.GetLogsResponse that it was recorded in. `at`: microseconds since 1970, as journald has it. */
export type LogLine = { readonly at: number; readonly bytes: Uint8Array };

export function isLineOf({ kind, detail }: Event, pod: string): boolean {
  return kind === "log.written" && detail?.$case === "text" && detail.value.pod === pod;
}

/** The line of an event; undefined when the request's app and times exclude it. */
export function logLine(
  { detail, occurred_at, observed_at, original }: Event,
  { app_name, since_time, until_time }: Pick<GetLogsRequest, "app_name" | "since_time" | "until_time">,
): LogLine | undefined {
  if (detail?.$case !== "text") return undefined;
  const { container, text } = detail.value;
  if (app_name !== "" && container !== app_name) return undefined;
  const { seconds, nanos } = occurred_at ?? observed_at ?? { seconds: 0n, nanos: 0 };
  if (seconds < since_time) return undefined;
  if (until_time !== 0n && seconds >= until_time) return undefined;
  const whole = original?.bytes ?? new Uint8Array();
  return {
    at: Number(seconds) * 1_000_000 + Math.floor(nanos / 1_000),
    bytes: whole.byteLength > 0 ? whole : GetLogsResponse.encode({ lines: [text] }).finish(),
  };
}
