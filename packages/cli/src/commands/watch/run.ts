import { type Client, connect, type SourceFilter, TapedeckError } from "@tapedeck/client";
import { CauseReader, withCauses } from "@tapedeck/client/lanes/causes";
import { foldNow, type Now, nowKinds } from "@tapedeck/client/lanes/now";
import { readLanes } from "@tapedeck/client/lanes/read-lanes";
import { apiAt, type Page } from "../../api/api.ts";
import { filterOf, parametersOf } from "../../api/filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { CommandError } from "../../command-error.ts";
import { rawOutput } from "../../display/output.ts";
import { namedSources } from "../../sources/named-source.ts";
import type { LanesView } from "./lanes-view.ts";
import { lanesView } from "./view.ts";

export type WatchOptions = {
  readonly url?: string;
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
};

export async function watch(options: WatchOptions): Promise<void> {
  const api = apiAt(options.url);
  const sources = await namedSources(api, options.source);
  const filter: SourceFilter = filterOf({ ...options, source: sources });
  // Reports an unreachable address or a wrong filter at once.
  const { items } = await api.get<Page<object>>("/api/v1/sources", { ...parametersOf(filter), limit: 1 });
  if (items.length === 0) await reportUnrecorded(api, sources);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const none = noneText(filter);
  const view = await lanesView({ out: rawOutput, keyboard: process.stdin, none, quit: () => stop.abort() });
  const { token } = api;
  using client = connect({
    url: api.base,
    ...(token !== undefined && { token }),
    onConnection: (isOpen) => view.isConnected(isOpen),
  });
  try {
    const read = await readLanes(client, filter, stop.signal);
    view.show(read.now);
    const messages = client.subscribe({
      ...filter,
      kinds: nowKinds,
      after: read.after,
      signal: stop.signal,
      // Dropped events are older than what is shown.
      onGap: () => {},
    });
    await showAll(messages, { now: read.now, client, signal: stop.signal }, view);
  } catch (error) {
    if (!stop.signal.aborted) throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  } finally {
    view.end();
  }
}

function noneText(filter: SourceFilter): string {
  return Object.keys(filter).length === 0
    ? "No sources yet. `tapedeck run -- skaffold dev` records a first one."
    : "No source matches yet. `tapedeck status` lists all.";
}

type Shown = { readonly now: Now; readonly client: Client; readonly signal: AbortSignal };

async function showAll(
  messages: ReturnType<Client["subscribe"]>,
  { now: from, client, signal }: Shown,
  view: LanesView,
) {
  let now = from;
  const causes = new CauseReader(client, signal, (operations) => {
    now = withCauses(now, operations);
    view.show(now);
  });
  for await (const message of messages) {
    if (message.type !== "event") continue;
    now = foldNow(now, message.event);
    causes.after(message.event);
    view.show(now);
  }
}
