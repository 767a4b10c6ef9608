import { rebuild } from "@tapedeck/query/for-cli/maintain";
import { querySettings } from "@tapedeck/query/for-cli/settings";
import { justBefore, messagesBetween } from "@tapedeck/shared/log/offset";
import { loadSettingsFile, settingsReader } from "@tapedeck/shared/service/settings";
import { inMessages } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { openThisMachine } from "../../maintain/this-machine.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

/** Rebuilds the tables of the Tapedeck that runs on a data folder. */
export async function rebuildHere(data: string, progressTo: ProgressTo): Promise<void> {
  await using machine = await openThisMachine(data);
  const { reader } = machine.log;
  await auditHere(machine.nats, { action: "tables.rebuilt", about: {} });
  const { configFile } = machine.running;
  const file = configFile === undefined ? undefined : loadSettingsFile(configFile);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const { firstOffset, lastOffset, messages: all } = await reader.bounds();
  const begin = justBefore(firstOffset);
  // The sequences of erased events are empty: the part of the sequences stands for the part of the events.
  const sequences = Math.max(1, messagesBetween(begin, lastOffset));
  const started = performance.now();
  let events = 0;
  using progress = new Progress({ what: "rebuild", unit: "messages", total: Math.max(1, all), ...progressTo });
  const unfilled: string[] = [];
  const swapped = await rebuild({
    databaseUrl: machine.databaseUrl,
    log: reader,
    textRows: querySettings(settingsReader({ env: process.env, file })).textRows,
    signal: stop.signal,
    // The log grows while it is read.
    onProgress: ({ position, ...applied }) => {
      events += applied.events;
      const part = Math.min(1, Math.max(0, messagesBetween(begin, position)) / sequences);
      progress.reached(Math.floor(Math.max(1, all) * part));
    },
    onUnfilled: (view, error) => unfilled.push(`${view} (${error instanceof Error ? error.message : error})`),
  });
  progress[Symbol.dispose]();
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  if (!swapped) print("stopped: the tables are unchanged, and the next rebuild continues from here");
  else print(`rebuilt the tables from ${inMessages({ events, messages: all })} (${seconds} s)`);
  if (unfilled.length > 0) print(`not filled; refresh them: ${unfilled.join(", ")}`);
}
