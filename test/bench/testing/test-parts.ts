import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Bench, type BenchOptions } from "../frame/bench.ts";
import type { FigureRow } from "../frame/row.ts";
import { startStack } from "../frame/stack.ts";
import { type PartName, parts } from "../parts/all.ts";

const size = 400;
/** A source's events in the log besides its frames: it was added, it connected, and its session began. */
const own = 3;

/** The client's count in the only run, by the start of the figure's name. */
const exactCounts: Readonly<Partial<Record<PartName, Readonly<Record<string, number>>>>> = {
  ingest: { "ingest, catch-up": size, "ingest at 1000/s": 200 },
  replay: {
    "replay, WebSocket": size + own,
    "replay, server-sent events": size + own,
    "replay, NDJSON": size + own,
  },
  fanout: { "fan-out": 20 * 20 },
  projection: { projection: size + own, rebuild: size + own },
  live: { "10 subscribers": 200 },
  harm: { "a dev loop": 20 },
  peers: {
    "beside Emmett on Postgres: append": size,
    "beside Emmett on Postgres: replay": size + own,
    "beside Redis Streams: append, catch-up": size,
    "beside Redis Streams: append at 1000/s": 200,
    "beside Redis Streams: replay": size + own,
    "beside Redis Streams: 5 readers": 200,
    "beside nginx with nchan: replay": size + own,
    "beside nginx with nchan: 5 readers": 200,
    "beside nginx with nchan: fan-out": 20 * 20,
  },
};

/** Processor time is counted in steps of 10 ms and memory in pages: small amounts may read as zero, and the difference of two as less. */
const mayBeNothing: ReadonlySet<string> = new Set(["cores", "µs", "µs more", "% of a core", "% of the loop", "KiB"]);

/** Tests at a tiny size that these parts measure what they claim. Times are not asserted. */
export function testParts(names: readonly PartName[], more: Pick<BenchOptions, "startService"> = {}): void {
  // One Postgres for all parts, and one stack for those that need no upstream.
  const shared = new AsyncDisposableStack();
  let options: BenchOptions;
  beforeAll(async () => {
    const folder = inject("serversFolder");
    const dataDir = join(folder, `postgres-bench-${randomBytes(6).toString("hex")}`);
    const postgres = shared.use(await startPostgres({ dataDir, port: 0, persistent: false, fsync: false }));
    const tiny = { size, runs: 1, warmUps: 0, effort: 0.02, folder, postgres, ...more };
    const readers = shared.use(await startStack(new Bench("readers", tiny), { services: ["query", "gateway"] }));
    options = { ...tiny, readers };
  });
  afterAll(() => shared.disposeAsync());

  // The work is done in other processes, so the parts may run side by side.
  describe.concurrent("every part has figures, calibrations and exact counts", () => {
    it.each(names)("%s", { timeout: 240_000 }, async (name) => {
      const bench = new Bench(name, options);
      await parts[name](bench);
      // Peers are measured where they are installed.
      const rows = bench.rows.filter(({ verdict }) => verdict !== "skipped");
      expect(rows.flatMap(({ figure, error }) => (error === undefined ? [] : [{ figure, error }]))).toEqual([]);
      expect(rows.flatMap(wrongNumbers)).toEqual([]);
      for (const [figure, count] of Object.entries(exactCounts[name] ?? {})) {
        const [row] = bench.rows.filter((each) => each.figure.startsWith(figure));
        if (row?.verdict === "skipped") continue;
        expect({ figure, counts: row?.counts }).toEqual({ figure, counts: [count] });
      }
    });
  });
}

function wrongNumbers({ figure, unit, runs, calibrationRuns }: FigureRow): readonly object[] {
  // Parts that share a stack consume each other's event loop measurements.
  const mayBeZero = mayBeNothing.has(unit) || figure.startsWith("longest hold");
  const isRight = (value: number) => (mayBeZero ? Number.isFinite(value) : value > 0);
  const areRight = runs.length > 0 && runs.length === calibrationRuns.length;
  return areRight && [...runs, ...calibrationRuns].every(isRight) ? [] : [{ figure, runs, calibrationRuns }];
}
