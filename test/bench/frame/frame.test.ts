import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";
import { readOptions, UsageError } from "../options.ts";
import { Report } from "../report/report.ts";
import { benchTable, flatnessTable, markdownTable } from "../report/table.ts";
import { latencies, SightingLog } from "./arrivals.ts";
import { Bench, type Comparison } from "./bench.ts";
import { readProcessorTimes, since } from "./processor-time.ts";
import { quantile, spread, verdictOf } from "./row.ts";
import { perSecond, type Sample } from "./sample.ts";
import { profileWorkers, startWorker } from "./worker.ts";

const scale = { size: 1_000, runs: 3, warmUps: 1, effort: 1, folder: "/nonexistent" };
const sample = (count: number): Sample => ({ count, wallMs: 1_000, cpuMs: { server: 500 }, values: { count } });

function comparison(more: Partial<Comparison> = {}): Comparison {
  const figure = { name: "reads", unit: "events/s", calibration: "bare reads", of: perSecond };
  return {
    figures: [{ ...figure, targets: [{ of: "ratio", atLeast: 0.5 }] }],
    run: async () => sample(100),
    calibrate: async () => sample(400),
    ...more,
  };
}

it("figure and calibration run in turns, and the first pair is the warm-up", async () => {
  const bench = new Bench("part", scale);
  const order: string[] = [];
  let runs = 0;
  const run = async () => {
    order.push("A");
    return sample(++runs * 100);
  };
  const calibrate = async () => {
    order.push("B");
    return sample(400);
  };
  await bench.compare(comparison({ run, calibrate }));
  expect(order.join("")).toBe("ABABABAB");
  const [row] = bench.rows;
  expect(row).toMatchObject({ runs: [200, 300, 400], ratios: [0.5, 0.75, 1], counts: [200, 300, 400], verdict: "met" });
  expect(row?.cpuPerEvent.server).toBeCloseTo(500_000 / 300, 6);
});

it("a failure is a line without figures, and the next comparison runs", async () => {
  const bench = new Bench("part", scale);
  await bench.compare(comparison({ run: () => Promise.reject(new Error("503 too slow")) }));
  const soonMs = 20;
  await bench.compare(comparison({ run: () => new Promise(() => {}), deadlineMs: soonMs }));
  await bench.compare(comparison());
  expect(bench.rows.map(({ verdict, error }) => [verdict, error])).toEqual([
    ["failed", "503 too slow"],
    ["failed", "not over after 0 s"],
    ["missed", undefined],
  ]);
  const text = benchTable(bench.rows);
  expect(text).toContain("503 too slow");
  expect(text).toMatch(/reads +100 \(100–100\) events\/s +400 \(400–400\) +0\.25/);
});

it("a client at a full core is named", async () => {
  const bench = new Bench("part", scale);
  const busy = { ...sample(1), cpuMs: { client: 950 } };
  await bench.compare(comparison({ run: async () => busy, clients: ["client"] }));
  expect(bench.rows[0]?.notes).toEqual(["client is at 0.95 of a core in the figure"]);
});

it("a target is met only when all that it asks for is reached", () => {
  const targets = [
    { of: "ratio", atLeast: 0.6 },
    { of: "value", atMost: 40 },
  ] as const;
  expect(verdictOf(targets, 40, 0.6)).toBe("met");
  expect(verdictOf(targets, 41, 0.6)).toBe("missed");
  expect(verdictOf(targets, 40, 0.59)).toBe("missed");
  expect(verdictOf(targets, 1, Number.NaN)).toBe("missed");
  expect(verdictOf([], 1, 1)).toBe("no target");
});

it("quantiles interpolate", () => {
  expect(spread([3, 1, 2, 5, 4])).toEqual({ median: 3, low: 2, high: 4 });
  expect(quantile([1, 2], 0.99)).toBeCloseTo(1.99, 9);
  expect(quantile([], 0.5)).toBeNaN();
});

it("latencies pair frames of the same source, channel and number", () => {
  const [emitted, arrived] = [new SightingLog(), new SightingLog()];
  emitted.see("b v1", 1, 10);
  emitted.see("a v1", 1, 11);
  for (let frame = 2; frame < 3_000; frame++) emitted.see("a v1", frame, frame);
  arrived.see("a v1", 1, 12);
  arrived.see("a v2", 1, 12);
  arrived.see("b v1", 1, 15);
  arrived.see("b v1", 1, 16);
  expect([...latencies(emitted.take(), arrived.take())]).toEqual([1, 5, 6]);
});

it("processor time is that of the process, the work of its children included", async () => {
  const module = new URL("../workers/skaffold.ts", import.meta.url);
  const worker = await startWorker<typeof import("../workers/skaffold.ts")>(module);
  const processes = { worker: worker.pid, here: process.pid };
  const before = readProcessorTimes(processes);
  const [start, rounds] = [performance.now(), await worker.call("roundsIn", 300)];
  await worker.call("work", rounds);
  const { worker: took = 0, here = 0 } = since(before, readProcessorTimes(processes));
  expect(took).toBeGreaterThanOrEqual(200);
  expect(took).toBeLessThanOrEqual(performance.now() - start + 20);
  // The worker goes on between the two readings, which are in ticks of 10 ms.
  expect(here).toBeGreaterThanOrEqual(took - 20);
  await worker[Symbol.asyncDispose]();
  expect(since(before, readProcessorTimes({ here: process.pid })).here).toBeGreaterThanOrEqual(took - 20);
});

it("figures at several sizes are flat or not", () => {
  const row = (size: number, runs: readonly number[]) => ({ ...emptyRow, size, runs });
  expect(flatnessTable([row(1_000, [10]), row(1_000_000, [11])])).toMatch(/1k to 1m +× 1\.1 +flat/);
  expect(flatnessTable([row(1_000, [10]), row(1_000_000, [13])])).toMatch(/× 1\.3 +not flat/);
  expect(flatnessTable([row(1_000, [10])])).toBe("");
});

it("a skipped line says why and is no failure", () => {
  const bench = new Bench("part", scale);
  const figure = { name: "beside a peer: reads", unit: "events/s", calibration: "the peer", targets: [] };
  bench.skip(figure, "it is not installed");
  expect(bench.rows).toMatchObject([{ verdict: "skipped", error: "it is not installed" }]);
  expect(benchTable(bench.rows)).toMatch(/beside a peer: reads \[1\] .*skipped\n\n\[1\] it is not installed/s);
  expect(markdownTable(bench.rows)).toContain("| beside a peer: reads | skipped: it is not installed |");
});

it("the table for a document has medians, the calibration, the ratio, the processor time, the target and the outcome", async () => {
  const bench = new Bench("part", scale);
  await bench.compare(comparison({ clients: ["client"] }));
  expect(markdownTable(bench.rows).split("\n")).toEqual([
    "| figure | median | calibration | ratio | µs | target |  |",
    "|---|---|---|---|---|---|---|",
    "| reads | 100 events/s | 400 | 0.25 | 5,000 | ≥ 0.5 of it | missed |",
  ]);
});

it("a report is on disk after each part, as JSON and as Markdown", async () => {
  await using temporary = await temporaryFolder();
  const { folder } = temporary;
  const machine = { cores: 2, model: "a processor", kernel: "6", node: "v24" };
  const report = new Report(join(folder, "bench.json"), {
    machine,
    durability: "fsync",
    options: {},
    scale: { runs: 3 },
  });
  report.write([{ ...emptyRow, size: 1_000, runs: [10] }]);
  expect(JSON.parse(readFileSync(report.json, "utf8"))).toMatchObject({ machine, rows: [{ runs: [10] }] });
  report.write([10, 11].map((run, at) => ({ ...emptyRow, size: 1_000 * (at + 1), runs: [run] })));
  const text = readFileSync(join(folder, "bench.md"), "utf8");
  expect(text).toContain("| reads (2k) | 11 ms | 1 | 1 |");
  expect(text).toContain("| reads | 1k to 2k | × 1.1 | flat | 10 to 11 ms |");
});

it("a worker of a bench with profiles leaves its own", async () => {
  await using temporary = await temporaryFolder();
  const { folder } = temporary;
  const module = new URL("../workers/idle.ts", import.meta.url);
  profileWorkers({ folder, part: "part" });
  try {
    const worker = await startWorker<typeof import("../workers/idle.ts")>(module);
    await worker[Symbol.asyncDispose]();
    expect(readdirSync(folder)).toEqual([`part-worker-idle-${worker.pid}.cpuprofile`]);
  } finally {
    profileWorkers(undefined);
  }
});

it("options", () => {
  const sizesOf = (...args: string[]) => {
    const byName = Map.groupBy(readOptions(args).runs, ({ name }) => name);
    const sizes = Object.fromEntries([...byName].map(([name, runs]) => [name, runs.map(({ size }) => size)]));
    return sizes;
  };
  const all = sizesOf();
  expect(all).toMatchObject({ state: [10_000, 1_000_000], replay: [100_000], ingest: [100_000] });
  expect(Object.keys(all)).toContain("peers");
  expect(sizesOf("--quick", "--only", "replay,state")).toEqual({ replay: [10_000], state: [10_000] });
  expect(sizesOf("--size", "10k,1m", "--only", "state,replay,live")).toEqual({
    state: [10_000, 1_000_000],
    replay: [10_000, 1_000_000],
    live: [10_000],
  });
  for (const args of [["--only", "nothing"], ["--size", "big"], ["--fast"]]) {
    expect(() => readOptions(args)).toThrow(UsageError);
  }
});

it("a worker's failure is the caller's", async () => {
  const module = new URL("../workers/requests.ts", import.meta.url);
  await using worker = await startWorker<typeof import("../workers/requests.ts")>(module);
  await expect(worker.call("httpTimes", ["http://127.0.0.1:1/"], 1)).rejects.toThrow("ECONNREFUSED");
});

const emptyRow = {
  part: "part",
  figure: "reads",
  unit: "ms",
  calibration: "",
  targets: [],
  verdict: "no target" as const,
  calibrationRuns: [1],
  ratios: [1],
  counts: [1],
  wallMs: [1],
  cpuPerEvent: {},
  calibrationCpuPerEvent: {},
  cores: {},
  calibrationCores: {},
  clients: [],
  notes: [],
};
