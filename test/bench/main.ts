import { mkdtempSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { compareWith } from "./against.ts";
import { Bench } from "./frame/bench.ts";
import type { FigureRow } from "./frame/row.ts";
import { durability } from "./frame/stack.ts";
import { profileWorkers } from "./frame/worker.ts";
import { type Options, readOptions, UsageError, usage } from "./options.ts";
import { parts, type Run } from "./parts/all.ts";
import { Report } from "./report/report.ts";
import { benchTable, flatnessTable, number, rowLine, short } from "./report/table.ts";

/** `npm run bench`: measures, prints a table, and writes it as JSON and as Markdown. */

const results = join(fileURLToPath(new URL("../../", import.meta.url)), ".tapedeck", "bench");
const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-");

// The same cache as for services of `tapedeck up`. Otherwise each service keeps the type-stripping compiler in memory,
// some 20 MiB.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../../node_modules/.cache/tapedeck", import.meta.url));

try {
  const options = readOptions(process.argv.slice(2));
  if (options.against === undefined) await run(options);
  else await compareWith(options.against);
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

  const report = new Report(resolve(options.out ?? join(results, `${stamp}.json`)), {
    machine,
    durability,
    options,
    scale,
  });
  const rows: FigureRow[] = [];
  for (const each of options.runs) {
    const { name, size } = each;
    const onRow = (row: FigureRow) => {
      rows.push(row);
      console.log(`  ${rowLine(row)}`);
    };
    console.log(titleOf(each, options.runs));
    const start = performance.now();
    const { profile, skaffold } = options;
    const more = { ...(profile && { profileFolder }), ...(skaffold && { skaffold }) };
    const bench = new Bench(name, { ...scale, size, folder, onRow, ...more });
    if (options.profile) profileWorkers({ folder: profileFolder, part: name });
    await parts[name](bench).catch((error: Error) => bench.fail(error));
    report.write(rows);
    const seconds = (performance.now() - start) / 1_000;
    console.log(`  ${number(seconds)} s, ${number(report.minutes)} min since the start\n`);
  }
  conclude(rows, report);
  if (options.profile) console.log(`Profiles of the services and of the bench's workers: ${profileFolder}`);
}

function conclude(rows: readonly FigureRow[], report: Report): void {
  console.log(benchTable(rows));
  const flat = flatnessTable(rows);
  if (flat !== "") console.log(`\n${flat}`);
  if (rows.some(({ verdict }) => verdict === "failed")) process.exitCode = 1;
  const { minutes, othersCores } = report;
  console.log(`\n${number(minutes)} min. All runs: ${report.json}\nFor a document: ${report.markdown}`);
  console.log(
    `Other programs took ${number(othersCores)} of ${cpus().length} cores meanwhile${notQuiet(othersCores)}.`,
  );
}

/** The title of a part that is measured at one size is its name. */
function titleOf({ name, size }: Run, runs: readonly Run[]): string {
  const isOnly = runs.filter((run) => run.name === name).length === 1;
  return isOnly ? name : `${name} (${short(size)})`;
}

/** Ratios tolerate some load from other programs, because both of a pair bear it; times and absolute figures do not. */
function notQuiet(othersCores: number): string {
  return othersCores > 0.1 ? ": do not take these figures for those of this machine" : "";
}
