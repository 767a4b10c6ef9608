import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { residentMiB } from "../frame/processor-time.ts";
import { perSecond, sampled, value } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { fillDashboards } from "../tables/dashboards.ts";

const cli = fileURLToPath(new URL("../../../packages/cli/bin/tapedeck.mjs", import.meta.url));
/** The year of the generated operations. */
const days = ["--from", "2025-11-20", "--to", "2026-11-20"];
/** 10 million rows in a minute. */
const minRows = 10_000_000 / 60;
/** The rows of one file in columns, and those of one column as the writer takes them. */
const maxMiB = 1_200;

/**
 * Runs `tapedeck export --parquet` over as many operations as the given size. All tables together have about twice as many
 * rows: `--size 5m` is 10 million.
 */
export async function parquet(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  await seed(bench, stack.log, bench.part, 400);
  await tablesCaughtUp(stack);
  await fillDashboards(stack.database, bench.options.size);
  const home = await bench.newFolder("home");
  let rows = 0;
  const run = async () => {
    const exported = await exportOnce(stack, home, days);
    rows = exported.count;
    return exported;
  };
  const memory = (name: string) => ({
    name: `export --parquet, peak memory of ${name}`,
    unit: "MiB",
    calibration: "a bare Node process",
    of: value(name),
    targets: [{ of: "value" as const, atMost: maxMiB }],
  });
  await bench.compare({
    figures: [
      {
        name: "export --parquet, rows of all tables",
        unit: "rows/s",
        calibration: "COPY of as many operations, in Postgres alone",
        of: perSecond,
        targets: [{ of: "value", atLeast: minRows }],
      },
      ...["cli", "query", "gateway"].map(memory),
    ],
    run,
    calibrate: () => copyOnce(stack, rows),
    deadlineMs: 3_600_000,
    runs: bench.isTiny ? 1 : 3,
    warmUps: 0,
  });
}

/** Exports into the folder `tables` of `home`. */
export async function exportOnce(stack: Stack, home: string, period: readonly string[]) {
  const folder = join(home, "tables");
  await rm(folder, { recursive: true, force: true });
  const args = [cli, "export", "--parquet", folder, ...period];
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TAPEDECK_URL: `http://${stack.http}`,
    TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1),
  };
  const child = spawn(process.execPath, args, { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
  const { query, gateway } = stack.processes;
  const pids = { cli: child.pid ?? 0, query: query ?? 0, gateway: gateway ?? 0 };
  const peaks: Record<string, number> = {};
  const watch = setInterval(() => {
    for (const [name, pid] of Object.entries(pids)) peaks[name] = Math.max(peaks[name] ?? 0, residentMiB(pid));
  }, 20);
  try {
    return await sampled({ ...stack.processes, cli: pids.cli }, async () => {
      const [text] = await Promise.all([child.stdout.toArray(), once(child, "exit")]);
      const printed = Buffer.concat(text).toString();
      const count = Number(/ ([0-9,]+) rows/.exec(printed)?.[1]?.replaceAll(",", ""));
      if (!(count > 0)) throw new Error(`the export printed: ${printed}`);
      return { count, values: peaks };
    });
  } finally {
    clearInterval(watch);
  }
}

/** Postgres writes the same number of rows, and nobody reads them. */
async function copyOnce(stack: Stack, rows: number) {
  const client = new Client(stack.database);
  await client.connect();
  try {
    const copy = `copy (select * from tapedeck.operations limit ${rows}) to '/dev/null' (format binary)`;
    const idle = residentMiB(stack.idlePid);
    return await sampled(stack.processes, async () => {
      const { rowCount } = await client.query(copy);
      return { count: rowCount ?? 0, values: { cli: idle, query: idle, gateway: idle } };
    });
  } finally {
    await client.end();
  }
}
