import type { FormatName } from "../definition.ts";
import type { Format } from "./format.ts";
import { webhook } from "./webhook.ts";

/** The formats by their names. A new one: its name in `formatNames`, and docs/sinks.md. */
export const formats: Readonly<Record<FormatName, Format>> = { webhook };
