import { connect, TapedeckError } from "@tapedeck/client";
import { type Kind, kindNoun, kinds, textKinds } from "@tapedeck/shared/events/kinds";
import { apiAt, type Page } from "../../api/api.ts";
import { filterOf, parametersOf } from "../../api/filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { type DisplayedEvent, eventLines, sourceColumn } from "../../display/event-lines.ts";
import { printGap } from "../../display/gap.ts";
import { isErrorTerminal, jsonText, outputColumns, print, printError } from "../../display/output.ts";
import { namedSources } from "../../sources/named-source.ts";

export type TailOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly session?: readonly string[];
  readonly kind?: readonly string[];
  readonly subject?: readonly string[];
  readonly artifact?: readonly string[];
  readonly outcome?: readonly string[];
  readonly after?: string;
  readonly since?: string;
  readonly until?: string;
  readonly last: number;
  readonly all?: boolean;
  readonly follow: boolean;
};

/** Kinds that are hidden: printed text, repeats of another channel, and what only Tapedeck needs. */
const quiet: readonly Kind[] = [
  ...textKinds,
  "mirror.received",
  "session.described",
  "session.identified",
  "source.checkpoint",
];

/** All other kinds, whole families by their noun. */
function defaultKinds(): readonly string[] {
  const families = new Map<string, Kind[]>();
  for (const kind of kinds) families.set(kindNoun(kind), [...(families.get(kindNoun(kind)) ?? []), kind]);
  return [...families].flatMap(([noun, members]) => {
    const visible = members.filter((kind) => !quiet.includes(kind));
    return visible.length === members.length ? [`${noun}.*`] : visible;
  });
}

export async function tail(options: TailOptions): Promise<void> {
  const api = apiAt(options.url);
  const sources = await namedSources(api, options.source);
  const kind = options.kind ?? (options.all ? undefined : defaultKinds());
  const filter = filterOf({ ...options, source: sources, kind });
  const columns = outputColumns();
  let isEmpty = true;
  // Grows with the names that come.
  let sourceWidth = sourceColumn([]);
  const show = (event: DisplayedEvent) => {
    isEmpty = false;
    sourceWidth = sourceColumn([event], sourceWidth);
    const lines = options.json ? [jsonText(event)] : eventLines(event, columns, sourceWidth);
    for (const line of lines) print(line);
  };
  let after = options.after ?? options.since;
  if (after === undefined && options.until === undefined) {
    const { items, position } = await api.get<Page<DisplayedEvent>>("/api/v1/events", {
      ...parametersOf(filter),
      last: Math.max(1, options.last),
    });
    sourceWidth = sourceColumn(items);
    for (const event of options.last === 0 ? [] : items) show(event);
    if (!options.follow) return items.length === 0 ? reportUnrecorded(api, sources) : undefined;
    after = position;
  }
  // Reports an unreachable address or a wrong filter at once.
  await api.get("/api/v1/events", { ...parametersOf(filter), last: 1 });
  // A reader who follows would wait for a mistyped name in vain.
  if (isEmpty && options.follow) await reportUnrecorded(api, sources);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const notify = (line: string) => (isErrorTerminal() ? printError(coloured("dim", line)) : undefined);
  const { token } = api;
  using client = connect({
    url: api.base,
    ...(token !== undefined && { token }),
    onConnection: (isOpen) => (isOpen ? undefined : notify("… connection lost; reconnecting")),
  });
  const until = options.until ?? (options.follow ? undefined : "now");
  try {
    for await (const event of client.events({
      ...filter,
      after: after ?? "start",
      ...(until !== undefined && { until }),
      signal: stop.signal,
      onGap: printGap,
    }))
      show(event);
  } catch (error) {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  }
  if (isEmpty && !options.follow) await reportUnrecorded(api, sources);
}
