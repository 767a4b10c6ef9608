import { stripVTControlCharacters, styleText } from "node:util";
import { connect, TapedeckError } from "@tapedeck/client";
import { type Kind, kindNoun, kinds } from "@tapedeck/shared/events/kinds";
import { apiAt, type Page } from "../../ask/api.ts";
import { filterOf, parametersOf } from "../../ask/filter.ts";
import { CommandError } from "../../command-error.ts";
import { shortSource } from "../sessions/run.ts";
import { type Colour, statusColour } from "../status/status-colour.ts";

export type TailOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly session?: readonly string[];
  readonly kind?: readonly string[];
  readonly subject?: readonly string[];
  readonly outcome?: readonly string[];
  readonly after?: string;
  readonly since?: string;
  readonly until?: string;
  readonly last: number;
  readonly all?: boolean;
  readonly follow: boolean;
};

/** What of an event is shown. */
export type ShownEvent = {
  readonly source: string;
  readonly kind: string;
  readonly summary: string;
  readonly recordedAt: string;
  readonly occurredAt?: string;
  readonly outcome?: string;
  readonly error?: { readonly message: string };
  readonly detail?: object;
};

/** What is printed, what another channel tells too, and what only Tapedeck needs. */
const quiet: readonly Kind[] = [
  "log.written",
  "terminal.written",
  "mirror.received",
  "session.described",
  "session.identified",
  "source.checkpoint",
];

/** All other kinds, whole families by their noun. */
function usualKinds(): readonly string[] {
  const families = new Map<string, Kind[]>();
  for (const kind of kinds) families.set(kindNoun(kind), [...(families.get(kindNoun(kind)) ?? []), kind]);
  return [...families].flatMap(([noun, members]) => {
    const shown = members.filter((kind) => !quiet.includes(kind));
    return shown.length === members.length ? [`${noun}.*`] : shown;
  });
}

export async function tail(options: TailOptions): Promise<void> {
  const api = apiAt(options.url);
  const filter = filterOf({ ...options, kind: options.kind ?? (options.all ? undefined : usualKinds()) });
  const columns = process.stdout.columns || undefined;
  const show = (event: ShownEvent) => {
    const lines = options.json ? [JSON.stringify(event)] : eventLines(event, columns);
    process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  };
  let after = options.after ?? options.since;
  if (after === undefined && options.until === undefined) {
    const { items, position } = await api.get<Page<ShownEvent>>("/api/v1/events", {
      ...parametersOf(filter),
      last: Math.max(1, options.last),
    });
    for (const event of options.last === 0 ? [] : items) show(event);
    if (!options.follow) return;
    after = position;
  }
  // So that nobody at that address, or a wrong filter, is said at once.
  await api.get("/api/v1/events", { ...parametersOf(filter), limit: 1 });
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const tell = (line: string) => process.stderr.isTTY && process.stderr.write(`${styleText("dim", line)}\n`);
  const { token } = api;
  using client = connect({
    url: api.base,
    ...(token !== undefined && { token }),
    onConnection: (isOpen) => (isOpen ? undefined : tell("… the connection is lost; going on when it is back")),
  });
  const until = options.until ?? (options.follow ? undefined : "now");
  try {
    for await (const event of client.events({
      ...filter,
      after: after ?? "start",
      ...(until !== undefined && { until }),
      signal: stop.signal,
    }))
      show(event);
  } catch (error) {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  }
}

const kindWidth = "session.configured".length;

/** One, of a text as many as it has lines. What is only there for positions has none. */
export function eventLines(event: ShownEvent, columns: number | undefined): readonly string[] {
  const { text, noise } = (event.detail ?? {}) as { readonly text?: unknown; readonly noise?: unknown };
  if (noise === true) return [];
  const isText = event.kind === "log.written" || event.kind === "terminal.written";
  if (!isText || typeof text !== "string") return [eventLine(event, columns)];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => eventLine({ ...event, summary: line }, columns));
}

/** `12:03:41  alice/shop  build.succeeded     Build completed for artifact web`, cut at the terminal's edge. */
function eventLine(event: ShownEvent, columns: number | undefined): string {
  const time = timeText(new Date(event.occurredAt ?? event.recordedAt));
  const [developer, project, upstream] = shortSource(event.source).split("/");
  // A rkt host is <host>/host/rkt: nothing else is called so.
  const isPlain = upstream === "skaffold" || (upstream === "rkt" && project === "host");
  const source = isPlain ? `${developer}/${project}` : shortSource(event.source);
  const colour = eventColour(event);
  const start = `${time}  ${source.padEnd(12)}  `;
  const room = columns === undefined ? Number.POSITIVE_INFINITY : columns - start.length - kindWidth - 2;
  const text = oneLine(event);
  const shown = text.length > room ? `${text.slice(0, Math.max(0, room - 1))}…` : text;
  return `${styleText("dim", time)}  ${source.padEnd(12)}  ${styleText(colour, event.kind.padEnd(kindWidth))}  ${shown}`.trimEnd();
}

/** Not every verb says how it went: pods and apps just exit, commands finish, and a job succeeds whose command failed. */
function eventColour({ kind, outcome = "" }: ShownEvent): Colour {
  const ofVerb = statusColour(kind.slice(kind.indexOf(".") + 1));
  return outcome === "failed" || ofVerb === "reset" ? statusColour(outcome) : ofVerb;
}

/** With its day where that is not today. */
function timeText(moment: Date): string {
  const time = moment.toTimeString().slice(0, 8);
  // sv-SE writes a day as 2026-01-31.
  return moment.toDateString() === new Date().toDateString() ? time : `${moment.toLocaleDateString("sv-SE")} ${time}`;
}

function oneLine({ summary, error }: ShownEvent): string {
  const known = error === undefined || error.message === "" || summary.includes(error.message);
  const text = known ? summary : `${summary}: ${error.message}`;
  // What tools write into their texts must not move the cursor or colour the terminal.
  return stripVTControlCharacters(text)
    .replace(/\p{Cc}+/gu, " ")
    .trim();
}
