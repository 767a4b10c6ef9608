import type { FormatName, SinkDefinition } from "../definition.ts";
import { cdEvents } from "./cdevents/cdevents.ts";
import { chat, slack } from "./chat/chat.ts";
import type { Format } from "./format.ts";
import { otlp } from "./otlp/otlp.ts";
import { webhook } from "./webhook.ts";

/** The formats by their names. A new one: its name in `formatNames`, and docs/sinks.md. */
export const formats: Readonly<Record<FormatName, Format>> = { webhook, otlp, slack, chat };

/** The format of a sink, as its definition varies it. */
export function formatOf({ format, cdevents }: Pick<SinkDefinition, "format" | "cdevents">): Format {
  return format === "webhook" && cdevents === true ? cdEvents : formats[format];
}
