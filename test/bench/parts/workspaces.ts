import { delay } from "@tapedeck/shared/sync/delay";
import { latencies } from "../frame/arrivals.ts";
import type { Bench } from "../frame/bench.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { percentiles } from "../frame/percentiles.ts";
import { proportionalMiB } from "../frame/processor-time.ts";
import { cores, type Sample, sampled, value } from "../frame/sample.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { startRaw } from "../frame/upstreams.ts";
import { startWorker, type Worker } from "../frame/worker.ts";
import type * as busy from "../workers/busy.ts";
import type * as pushers from "../workers/pushers.ts";

type Pushers = Worker<typeof pushers>;

const startPushers = () => startWorker<typeof pushers>(new URL("../workers/pushers.ts", import.meta.url));
const startBusy = () => startWorker<typeof busy>(new URL("../workers/busy.ts", import.meta.url));

const services = ["ingest", "query", "gateway"] as const;
const named = (count: number) => Array.from({ length: count }, (_, at) => `team-${at}`);

/** Measures what many workspaces cost, each with a log of its own. */
export async function workspaces(bench: Bench): Promise<void> {
  await spread(bench);
  await atRest(bench);
}

async function connectTo(stack: Stack, taps: Pushers, count: number, sources: number): Promise<void> {
  const address = stack.services.ingest?.addresses.grpc ?? "";
  await taps.call("connect", { address, key: "bench", workspaces: named(count), sources });
}

/** The same rate over twenty workspaces, on a machine that does nothing else, and on one whose cores are busy. */
async function spread(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const rate = bench.scaled(2_000, 100);
  const seconds = bench.scaled(3_000, 200) / 1_000;
  const stack = cleanup.use(await startStack(bench, { services }));
  const taps = cleanup.use(await startPushers());
  await connectTo(stack, taps, 20, 5);
  // What a source says first is held for a moment, to be sorted.
  await taps.call("pace", rate, bench.isTiny ? 0.2 : 5);
  if (!bench.isTiny) await delay(1_000);
  const raw = cleanup.use(await startRaw());
  await taps.call("connect", {
    address: stack.services.ingest?.addresses.grpc ?? "",
    key: "bench",
    workspaces: ["default"],
    sources: 1,
  });
  await raw.call("load", stack.nats.url, 1_000);
  const others = [cleanup.use(await startBusy()), cleanup.use(await startBusy())];
  const mine = Object.keys(stack.processes);
  const processes = { ...stack.processes, taps: taps.pid, publisher: raw.pid };
  const holds = new LoopHolds(stack);
  for (const isStarved of [false, true]) {
    const title = `${rate} events/s over 20 workspaces${isStarved ? ", both cores kept busy by others" : ""}`;
    const beside = async (run: () => Promise<Sample>): Promise<Sample> => {
      const spinning = isStarved ? others.map((other) => other.call("spin", seconds * 1_000)) : [];
      const sample = await run();
      await Promise.all(spinning);
      return sample;
    };
    const calibration = "raw publishes at the same rate, to the acknowledgement";
    await bench.compare({
      figures: [
        {
          name: `${title}: tap to acknowledged, p50`,
          unit: "ms",
          calibration,
          of: value("p50"),
          targets: isStarved ? [] : [{ of: "value", atMost: 5 }],
        },
        {
          name: `${title}: tap to acknowledged, p99`,
          unit: "ms",
          calibration,
          of: value("p99"),
          targets: isStarved ? [] : [{ of: "value", atMost: 50 }],
        },
        {
          name: `${title}: all processes`,
          unit: "cores",
          calibration: "the same: publisher and log's server",
          of: cores(mine),
          against: cores(["nats", "publisher"]),
          targets: [],
        },
      ],
      clients: ["taps", "publisher"],
      run: () =>
        beside(() =>
          holds.during(() =>
            sampled(processes, async () => {
              const { count, wallMs, latenciesMs } = await taps.call("pace", rate, seconds);
              return { count, wallMs, values: percentiles(latenciesMs) };
            }),
          ),
        ),
      calibrate: () =>
        beside(() =>
          sampled(processes, async () => {
            const { due, acknowledged } = await raw.call("pace", rate, seconds);
            const took = latencies(due, acknowledged);
            return { count: took.length, values: percentiles(took) };
          }),
        ),
    });
  }
  holds.report(bench, "20 workspaces");
}

/** A thousand workspaces with a source each that is connected, and in which nothing happens. */
async function atRest(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const count = bench.scaled(1_000, 10);
  const ms = bench.scaled(20_000, 200);
  const stack = cleanup.use(await startStack(bench, { services, bare: true }));
  const taps = cleanup.use(await startPushers());
  await connectTo(stack, taps, count, 1);
  // After half a minute nobody follows a log in which nothing happens. NATS, Postgres and V8 tidy up for another two.
  await delay(8 * ms);
  const mine = Object.keys(stack.processes);
  const rest = async () => {
    await delay(ms);
    const sum = Object.values(stack.processes).reduce((sum, pid) => sum + proportionalMiB(pid), 0);
    return { count: 1, values: { MiB: sum } };
  };
  const title = `${count} workspaces with a source each that is connected, at rest`;
  await bench.compare({
    figures: [
      {
        name: `${title}: processor time of all processes`,
        unit: "% of a core",
        calibration: "a bare Node process with a timer of 5 ms",
        of: (sample) => 100 * cores(mine)(sample),
        against: (sample) => 100 * cores(["idle"])(sample),
        targets: [{ of: "value", atMost: 4 }],
      },
      {
        name: `${title}: memory of all processes`,
        unit: "MiB",
        calibration: "a bare Node process",
        of: value("MiB"),
        targets: [{ of: "value", atMost: 1_228 }],
      },
    ],
    runs: bench.isTiny ? 1 : 3,
    warmUps: 0,
    run: () => sampled(stack.processes, rest),
    calibrate: () =>
      sampled({ idle: stack.idlePid }, async () => {
        await delay(Math.min(ms, 5_000));
        return { count: 1, values: { MiB: proportionalMiB(stack.idlePid) } };
      }),
  });
}
