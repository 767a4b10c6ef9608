import { querySettings } from "@tapedeck/query/config";
import { rebuild } from "@tapedeck/query/rebuild";
import { views } from "@tapedeck/query/views/views";
import { loadSettingsFile, settingsReader } from "@tapedeck/shared/service/settings";
import type { RebuildOptions } from "../commands/rebuild.ts";
import { openThisMachine } from "./this-machine.ts";

const tellMs = 500;

export async function rebuildTables({ data }: RebuildOptions): Promise<void> {
  await using machine = await openThisMachine(data);
  const { reader } = machine.log;
  const { configFile } = machine.running;
  const file = configFile === undefined ? undefined : loadSettingsFile(configFile);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const { firstSeq, lastSeq } = await reader.bounds();
  const all = Math.max(1, lastSeq - firstSeq + 1);
  const started = performance.now();
  let told = started;
  await rebuild({
    databaseUrl: machine.databaseUrl,
    log: reader,
    views: views({ textRows: querySettings(settingsReader({ env: process.env, file })).textRows }),
    analystPassword: machine.analystPassword,
    signal: stop.signal,
    onProgress: ({ position }) => {
      if (!process.stdout.isTTY || performance.now() - told < tellMs) return;
      told = performance.now();
      process.stdout.write(`\r${Math.min(100, Math.floor((100 * (position - firstSeq + 1)) / all))} %`);
    },
  });
  if (process.stdout.isTTY) process.stdout.write("\r");
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  if (stop.signal.aborted) console.log("stopped; the tables are as they were, and the next rebuild goes on from here");
  else console.log(`the tables are made anew from ${lastSeq - firstSeq + 1} events (${seconds} s)`);
}
