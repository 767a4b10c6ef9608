import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Bench } from "./frame/bench.ts";
import { type Options, readOptions, UsageError, usage } from "./frame/options.ts";
import { machineMs, ownMs } from "./frame/processor-time.ts";
import type { Row } from "./frame/row.ts";
import { durability } from "./frame/stack.ts";
import { benchTable, flatness, number, short } from "./frame/table.ts";
import { parts } from "./parts/all.ts";

/** `npm run bench`: measures, prints a table and writes JSON. */

const results = join(fileURLToPath(new URL("../../", import.meta.url)), ".tapedeck", "bench");
const startedAt = new Date();
const stamp = startedAt.toISOString().replaceAll(/[:.]/g, "-");

try {
  await run(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n${usage}`);
  process.exitCode = 2;
}

async function run(options: Options): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tapedeck-bench-"));
  await chmod(folder, 0o711); // started by root, Postgres runs as another user
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const profileFolder = join(results, `profiles-${stamp}`);
  const scale = options.quick ? { runs: 3, warmUps: 1, effort: 0.3 } : { runs: 5, warmUps: 1, effort: 1 };
  const machine = { cores: cpus().length, model: cpus()[0]?.model ?? "", kernel: release(), node: process.version };
  console.log(`${machine.cores} × ${machine.model}, Node ${machine.node}. ${durability}.\n`);

  const rows: Row[] = [];
  const [machineBefore, ownBefore] = [machineMs(), ownMs()];
  for (const size of options.sizes) {
    for (const name of options.parts) {
      process.stdout.write(`${name} (${short(size)}) … `);
      const start = performance.now();
      const bench = new Bench(name, { ...scale, size, folder, ...(options.profile && { profileFolder }) });
      await parts[name](bench).catch((error: Error) => bench.fail(error));
      rows.push(...bench.rows);
      console.log(`${bench.rows.length} lines (${((performance.now() - start) / 1_000).toFixed(0)} s)`);
    }
  }
  console.log(`\n${benchTable(rows)}`);
  const flat = flatness(rows);
  if (flat !== "") console.log(`\n${flat}`);

  const file = resolve(options.out ?? join(results, `${stamp}.json`));
  mkdirSync(dirname(file), { recursive: true });
  const minutes = (Date.now() - startedAt.getTime()) / 60_000;
  const othersMs = machineMs() - machineBefore - (ownMs() - ownBefore);
  const othersCores = Math.max(0, othersMs / (Date.now() - startedAt.getTime()));
  const report = { startedAt, minutes, machine, othersCores, durability, options, scale, rows };
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  console.log(`\n${minutes.toFixed(1)} min. All runs: ${file}`);
  console.log(
    `Other programs took ${number(othersCores)} of ${machine.cores} cores meanwhile${notQuiet(othersCores)}.`,
  );
  if (options.profile) console.log(`Profiles of the services: ${profileFolder}`);
}

/** Ratios bear some company, because both of a pair have it; times and absolute figures do not. */
function notQuiet(othersCores: number): string {
  return othersCores > 0.1 ? ": do not take these figures for those of this machine" : "";
}
