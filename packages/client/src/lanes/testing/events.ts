import type { TapedeckEvent } from "../../index.ts";

export const source = "acme/bob/shop/skaffold";
export const session = "01SESSION";

type Fields = Partial<Omit<TapedeckEvent, "kind" | "detail">> & { readonly detail?: object };

/** An event `at` seconds after the start of the test's day; its position is later the later it is. */
export function event(at: number, kind: string, fields: Fields = {}): TapedeckEvent {
  const time = new Date(Date.UTC(2026, 0, 1) + at * 1_000).toISOString();
  const position = `${String(Math.round(at * 1_000)).padStart(9, "0")}-log`;
  const base = { position, recordedAt: time, occurredAt: time, id: position, source, session };
  const rest = { channel: "v1", ordinal: 1, frameOrdinal: 1, part: 0, summary: kind };
  return { ...base, ...rest, kind, ...fields } as TapedeckEvent;
}

/** An event of an operation in a loop. */
export function inLoop(at: number, kind: string, loop: number, fields: Fields & { readonly subject?: string } = {}) {
  const [noun = ""] = kind.split(".");
  const operation = { kind: noun, subject: fields.subject ?? "", runner: 1, loop };
  return event(at, kind, { operation, ...fields });
}

/** The time of `event(at, …)`. */
export const at = (seconds: number): number => Date.UTC(2026, 0, 1) + seconds * 1_000;

export const failed = (message: string) => ({
  outcome: "failed" as const,
  error: { code: "CODE", message, suggestions: [] },
});
