import { connect, type SourceFilter, TapedeckError } from "@tapedeck/client";
import { apiAt, type Page } from "../../api/api.ts";
import { filterOf, parametersOf } from "../../api/filter.ts";
import { followLanes } from "../../api/follow-lanes.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { CommandError } from "../../command-error.ts";
import { printError, rawOutput } from "../../display/output.ts";
import { namedSources } from "../../sources/named-source.ts";
import { lanesView } from "./view.ts";

export type WatchOptions = {
  readonly url?: string;
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly notify?: boolean;
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
  // On the screen that is drawn it would be overwritten.
  const reports: string[] = [];
  let isDrawn = false;
  const report = (line: string) => void (isDrawn ? reports.push(line) : printError(`tapedeck: ${line}`));
  using notices = options.notify === true ? await openNotices(report) : undefined;
  const view = await lanesView({ out: rawOutput, keyboard: process.stdin, none, quit: () => stop.abort() });
  isDrawn = rawOutput.isTTY;
  const { token } = api;
  using client = connect({
    url: api.base,
    ...(token !== undefined && { token }),
    onConnection: (isOpen) => view.isConnected(isOpen),
  });
  try {
    await followLanes(client, filter, stop.signal, (now) => {
      view.show(now);
      notices?.update(now);
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  } finally {
    view.end();
    for (const line of reports) printError(`tapedeck: ${line}`);
  }
}

function noneText(filter: SourceFilter): string {
  return Object.keys(filter).length === 0
    ? "No sources yet. `tapedeck run -- skaffold dev` records a first one."
    : "No source matches yet. `tapedeck status` lists all.";
}

/** On the desktop: what fails from now on, and what is good again. */
async function openNotices(report: (line: string) => void) {
  const [{ Desktop }, { LoopNotices }] = await Promise.all([
    import("../../notices/desktop.ts"),
    import("../../notices/loop-notices.ts"),
  ]);
  const desktop = new Desktop(report);
  return new LoopNotices({ show: (notice) => desktop.show(notice) });
}
