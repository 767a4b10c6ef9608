import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { latencies } from "../frame/arrivals.ts";
import { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { percentiles } from "../frame/percentiles.ts";
import type { Processes } from "../frame/processor-time.ts";
import { cpuPerEvent, perSecond, type Sample, sampled, value } from "../frame/sample.ts";
import { type Stack, startNats, startStack } from "../frame/stack.ts";
import { opening, settle, sourcesOf, startObserver, startUpstreams } from "./upstreams.ts";

type Load = {
  readonly sources: number;
  /** Events a second, of all sources together. */
  readonly rate: number;
  readonly seconds: number;
};

/** Many sources that emit a little each: over four shards, and for comparison on one log. */
export async function shards(bench: Bench): Promise<void> {
  const load = { sources: bench.scaled(1_000, 8), rate: bench.scaled(5_000, 40), seconds: bench.isTiny ? 1 : 10 };
  const samples = await measure(bench, 4, load);
  const onOneLog = await measure(bench, 1, load);
  const all = Object.keys(samples[0]?.cpuMs ?? {});
  const allOnOneLog = Object.keys(onOneLog[0]?.cpuMs ?? {});
  const title = `${load.sources} sources at ${load.rate / load.sources}/s each over 4 shards`;
  const line = (name: string, unit: string, of: (sample: Sample) => number, against = of) =>
    bench.add(
      { name: `${title}: ${name}`, unit, calibration: "the same sources on one log", targets: [] },
      samples.map(of),
      onOneLog.map(against),
    );
  line("recorded", "events/s", perSecond);
  line("upstream to log, p50", "ms", value("p50"));
  line("upstream to log, p99", "ms", value("p99"));
  line("all processes, per event", "µs", cpuPerEvent(all), cpuPerEvent(allOnOneLog));
}

/** Runs over so many shards: accounts of one nats-server, databases of one Postgres, and one gateway that follows all. */
async function measure(bench: Bench, count: number, { sources, rate, seconds }: Load): Promise<readonly Sample[]> {
  await using cleanup = new AsyncDisposableStack();
  const runs = Math.min(bench.options.runs, 3) + bench.options.warmUps;
  const upstreams = cleanup.use(await startUpstreams());
  const framesOfEach = opening + Math.ceil(((rate * seconds) / sources) * runs + 10);
  const addresses = await upstreams.call("start", sources, framesOfEach);
  const { stacks, processes } = await startShards(cleanup, bench, count, sourcesOf(addresses));
  const [first, ...others] = stacks;
  if (first === undefined) throw new Error("there is no shard");
  const observer = cleanup.use(await startObserver(first));
  for (const { nats } of others) await observer.call("observe", nats.url, nats.login ?? {});
  await settle(upstreams, observer, sources);
  const samples: Sample[] = [];
  for (let run = 0; run < runs; run++) {
    const sample = await sampled(processes, async () => {
      const start = performance.now();
      const { emitted, count } = await upstreams.call("pace", rate, seconds);
      await observer.call("sawFrames", count);
      const wallMs = performance.now() - start;
      const took = latencies(emitted, await observer.call("take"));
      if (took.length !== count) throw new Error(`${took.length} of ${count} frames were recorded`);
      // The remaining work of query belongs to these events, too.
      for (const stack of stacks) await tablesCaughtUp(stack);
      return { count, wallMs, values: percentiles(took) };
    });
    if (run >= bench.options.warmUps) samples.push(sample);
  }
  return samples;
}

type Sources = ReturnType<typeof sourcesOf>;

/** The last shard is home, with the gateway. */
async function startShards(cleanup: AsyncDisposableStack, bench: Bench, count: number, sources: Sources) {
  const folder = await bench.newFolder("servers");
  await chmod(folder, 0o711); // started by root, Postgres runs as another user
  const names = Array.from({ length: count }, (_, index) => `shard-${index}`);
  const server = cleanup.use(
    await startNats(
      folder,
      names.map((name) => ({ name, user: name, password: name })),
    ),
  );
  const postgres =
    bench.options.postgres ??
    cleanup.use(await startPostgres({ dataDir: join(folder, "postgres"), port: 0, persistent: false, fsync: true }));
  const shared = new Bench(bench.part, { ...bench.options, postgres });
  const stacks: Stack[] = [];
  const settings: object[] = [];
  for (const [index, name] of names.entries()) {
    const nats = { url: server.url, user: name, password: name };
    const isHome = index === count - 1;
    const stack = await startStack(shared, {
      services: ["ingest", "query", ...(isHome ? (["gateway"] as const) : [])],
      sources: sources.filter((_, at) => at % count === index),
      nats,
      env: {
        TAPEDECK_WORKSPACE: name,
        TAPEDECK_AUTH: "tokens",
        ...(isHome && settings.length > 0 && { TAPEDECK_SHARDS: JSON.stringify(settings) }),
      },
    });
    stacks.push(cleanup.use(stack));
    const { ingest, query } = stack.services;
    settings.push({ name, workspaces: [name], nats, query: query?.addresses.grpc, ingest: ingest?.addresses.grpc });
  }
  return { stacks, processes: processesOf(stacks, { nats: server.pid, postgres: postgres.pid }) };
}

function processesOf(stacks: readonly Stack[], servers: Processes): Processes {
  const services = stacks.flatMap(({ services }, index) =>
    Object.entries(services).map(([name, { pid }]) => [`${name} ${index}`, pid] as const),
  );
  return { ...Object.fromEntries(services), ...servers };
}
