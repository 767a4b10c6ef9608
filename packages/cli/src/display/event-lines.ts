import { explain } from "@tapedeck/explain";
import { isTextKind } from "@tapedeck/shared/events/kinds";
import { coloured } from "./colour.ts";
import { plainLine } from "./plain-line.ts";
import { spokenSource } from "./source-name.ts";
import { type Colour, statusColour } from "./status-colour.ts";

/** The parts of an event that are shown. */
export type DisplayedEvent = {
  readonly source: string;
  readonly kind: string;
  readonly summary: string;
  readonly recordedAt: string;
  readonly occurredAt?: string;
  readonly outcome?: string;
  readonly error?: { readonly message: string };
  readonly detail?: object;
};

const kindWidth = "session.configured".length;

/** The width that the sources of all events need: what stands behind them is a column then. */
export function sourceColumn(events: readonly Pick<DisplayedEvent, "source">[], atLeast = 12): number {
  return Math.max(atLeast, ...events.map(({ source }) => spokenSource(source).length));
}

/** One, of a text as many as it has lines. What is only there for positions has none. */
export function eventLines(
  event: DisplayedEvent,
  columns: number | undefined,
  sourceWidth = sourceColumn([event]),
): readonly string[] {
  const { text, noise } = (event.detail ?? {}) as { readonly text?: unknown; readonly noise?: unknown };
  if (noise === true) return [];
  if (!isTextKind(event.kind) || typeof text !== "string") return [eventLine(event, columns, sourceWidth)];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => eventLine({ ...event, summary: line }, columns, sourceWidth));
}

/** `12:03:41  alice/shop  build.succeeded     Build completed for artifact web`, cut at the terminal's edge. */
function eventLine(event: DisplayedEvent, columns: number | undefined, sourceWidth: number): string {
  const time = timeText(new Date(event.occurredAt ?? event.recordedAt));
  const source = spokenSource(event.source).padEnd(sourceWidth);
  const colour = eventColour(event);
  const start = `${time}  ${source}  `;
  const room = columns === undefined ? Number.POSITIVE_INFINITY : columns - start.length - kindWidth - 2;
  const text = oneLine(event);
  const shortened = text.length > room ? `${text.slice(0, Math.max(0, room - 1))}…` : text;
  return `${coloured("dim", time)}  ${source}  ${coloured(colour, event.kind.padEnd(kindWidth))}  ${shortened}`.trimEnd();
}

/**
 * Not every verb implies an outcome: pods and apps just exit, commands finish, and a job succeeds whose command failed.
 */
function eventColour({ kind, outcome = "" }: DisplayedEvent): Colour {
  const ofVerb = statusColour(kind.slice(kind.indexOf(".") + 1));
  return outcome === "failed" || ofVerb === "reset" ? statusColour(outcome) : ofVerb;
}

/** Includes the date unless it is today. */
function timeText(date: Date): string {
  const time = date.toTimeString().slice(0, 8);
  // sv-SE writes a day as 2026-01-31.
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("sv-SE")} ${time}`;
}

/** A summary ends with the first line of the error, where another line may say more. */
function oneLine({ summary, error }: DisplayedEvent): string {
  const cause = error?.message ? (explain({ output: "", summary: error.message })?.cause ?? "") : "";
  if (cause === "" || summary.includes(cause)) return plainLine(summary);
  const end = summary.indexOf(failedWith);
  return plainLine(`${end < 0 ? summary : summary.slice(0, end)}${end < 0 ? ": " : failedWith}${cause}`);
}

const failedWith = " failed: ";
