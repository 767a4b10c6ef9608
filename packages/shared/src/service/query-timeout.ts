import type { SettingsReader } from "./settings.ts";

/** How long, in ms, a question to query may take: query ends it then; the gateway waits a little longer. */
export function queryTimeout(read: SettingsReader): number {
  return read.duration("limits.query", 15_000, {
    min: 10,
    description: "The time that query may take for an answer.",
    past: "`limit_exceeded`",
  });
}
