import { latencies } from "../../frame/arrivals.ts";
import type { Bench } from "../../frame/bench.ts";
import { percentiles } from "../../frame/percentiles.ts";
import type { Figure } from "../../frame/row.ts";
import { perSecond, type Sample, sampled, value } from "../../frame/sample.ts";
import { type Stack, startStack } from "../../frame/stack.ts";
import { connected, opening, recordedTo, sourcesOf, startObserver, startUpstreams } from "../../frame/upstreams.ts";
import type { Worker } from "../../frame/worker.ts";
import type * as logObserver from "../../workers/log-observer.ts";
import type * as skaffold from "../../workers/skaffold.ts";
import type { Peers } from "./found.ts";
import { loggedFrames } from "./logged.ts";
import { Missing } from "./servers.ts";

const rate = 1_000;

/** Measures from the upstream's message to the disk, beside peers that are given ready events. */
export async function appends(bench: Bench, { redis, emmett }: Peers): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const { runs, warmUps, size } = bench.options;
  const frames = Math.min(size, bench.scaled(10_000, 400));
  const seconds = bench.scaled(2_000, 200) / 1_000;
  const upstreams = cleanup.use(await startUpstreams());
  const needed = opening + (runs + warmUps) * (2 * frames + Math.ceil(rate * seconds)) + frames;
  const sources = sourcesOf(await upstreams.call("start", 1, needed));
  const stack = cleanup.use(await startStack(bench, { services: ["ingest"], sources }));
  await connected(upstreams, 1);
  await upstreams.call("playTo", opening);
  const scene = { upstreams, stack };
  await catchUp(scene, frames);
  const logged = await loggedFrames(stack);
  cleanup.defer(() => emmett.call("close"));
  await emmett.call(
    "open",
    stack.database,
    "appended",
    logged.map(({ fullJson }) => fullJson),
  );
  await bench.compare({
    figures: [figures.emmett],
    clients: ["generator", "client"],
    run: () => catchUp(scene, frames),
    calibrate: () =>
      sampled({ postgres: stack.processes.postgres ?? 0, client: emmett.pid }, async () => ({
        count: await emmett.call("append", frames),
      })),
  });
  if (redis instanceof Missing) {
    for (const figure of [figures.redis, ...figures.paced]) bench.skip(figure, redis.why);
    return;
  }
  const { client } = redis;
  const processes = { redis: redis.pid, client: client.pid };
  await client.call(
    "open",
    redis.port,
    "appended",
    logged.map(({ bytes }) => bytes),
  );
  await bench.compare({
    figures: [figures.redis],
    clients: ["generator", "client"],
    run: () => catchUp(scene, frames),
    calibrate: () => sampled(processes, async () => ({ count: await client.call("append", frames) })),
  });
  const observer = cleanup.use(await startObserver(stack));
  await bench.compare({
    figures: figures.paced,
    clients: ["generator", "observer", "client"],
    run: () => paced(scene, observer, seconds),
    calibrate: () =>
      sampled(processes, async () => {
        const { due, acknowledged } = await client.call("pace", rate, seconds);
        const took = latencies(due, acknowledged);
        return { count: took.length, values: percentiles(took) };
      }),
  });
}

const each = "Redis Streams, XADD of each event by itself, to its answer";
const took = (part: "p50" | "p99"): Figure => ({
  name: `beside Redis Streams: append at ${rate}/s, to the disk, ${part}`,
  unit: "ms",
  calibration: each,
  of: value(part),
  targets: [],
});
const appended = { unit: "events/s", of: perSecond, targets: [] } as const;
const figures = {
  redis: {
    name: "beside Redis Streams: append, catch-up of one source",
    ...appended,
    calibration: "Redis Streams with appendfsync always, XADD of the same bytes in pipelines of 64 KiB",
  },
  emmett: {
    name: "beside Emmett on Postgres: append, catch-up of one source",
    ...appended,
    calibration: "Emmett's event store, the same events as JSON, a thousand in a transaction",
  },
  paced: [took("p50"), took("p99")],
} as const;

type Scene = {
  readonly upstreams: Worker<typeof skaffold>;
  readonly stack: Stack;
};

async function catchUp({ upstreams, stack }: Scene, frames: number): Promise<Sample> {
  const said = await upstreams.call("saidSoFar");
  const before = (await recordedTo(stack, said)).events;
  return sampled({ ...stack.processes, generator: upstreams.pid }, async () => {
    await upstreams.call("playTo", said + frames);
    return { count: (await recordedTo(stack, said + frames)).events - before };
  });
}

function paced({ upstreams, stack }: Scene, observer: Worker<typeof logObserver>, seconds: number): Promise<Sample> {
  const processes = { ...stack.processes, generator: upstreams.pid, observer: observer.pid };
  return sampled(processes, async () => {
    const { emitted, count, wallMs } = await upstreams.call("pace", rate, seconds);
    await observer.call("sawFrames", count);
    const took = latencies(emitted, await observer.call("take"));
    if (took.length !== count) throw new Error(`${took.length} of ${count} frames were recorded`);
    return { count, wallMs, values: percentiles(took) };
  });
}
