import { latencies } from "../frame/arrivals.ts";
import type { Bench } from "../frame/bench.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { percentiles } from "../frame/percentiles.ts";
import { cores, perSecond, sampled, value } from "../frame/sample.ts";
import { startStack } from "../frame/stack.ts";
import {
  connected,
  opening,
  recordedTo,
  settle,
  sourcesOf,
  startObserver,
  startRaw,
  startUpstreams,
} from "../frame/upstreams.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { startWorker } from "../frame/worker.ts";
import type * as sockets from "../workers/sockets.ts";

export async function ingest(bench: Bench): Promise<void> {
  await catchUp(bench);
  await paced(bench, { sources: 1, perSecond: 1_000, subscribers: bench.scaled(50, 5) });
  if (bench.isTiny) return;
  await paced(bench, { sources: bench.scaled(200, 4), perSecond: bench.scaled(2_000, 40), subscribers: 0 });
}

/** One Skaffold emits as fast as it is read. */
async function catchUp(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const { runs, warmUps, size } = bench.options;
  const frames = Math.min(size, 30_000);
  const upstreams = cleanup.use(await startUpstreams());
  const addresses = await upstreams.call("start", 1, opening + frames * (runs + warmUps));
  const stack = cleanup.use(await startStack(bench, { services: ["ingest"], sources: sourcesOf(addresses) }));
  await connected(upstreams, 1);
  await upstreams.call("playTo", opening);
  let recorded = await recordedTo(stack, opening);
  const raw = cleanup.use(await startRaw());
  const processes = { ...stack.processes, generator: upstreams.pid };
  const holds = new LoopHolds(stack);
  let said = opening;
  let recordedEvents = 0;
  let isLoaded = false;
  await bench.compare({
    figures: [
      {
        name: "ingest, catch-up of one source",
        unit: "events/s",
        calibration: "raw publishes of the same events in record batches",
        of: perSecond,
        targets: [
          { of: "ratio", atLeast: 0.6 },
          { of: "value", atLeast: 40_000 },
        ],
      },
    ],
    clients: ["generator", "publisher"],
    run: () =>
      holds.during(() =>
        sampled(processes, async () => {
          const before = recorded.events;
          said += frames;
          await upstreams.call("playTo", said);
          recorded = await recordedTo(stack, said);
          recordedEvents = recorded.events - before;
          return { count: recordedEvents };
        }),
      ),
    async calibrate() {
      if (!isLoaded) await raw.call("load", stack.nats.url, recordedEvents);
      isLoaded = true;
      return sampled({ nats: stack.processes.nats ?? 0, publisher: raw.pid }, async () => ({
        count: await raw.call("publish", recordedEvents),
      }));
    },
  });
  holds.report(bench, "ingest, catch-up");
}

type Pace = { readonly sources: number; readonly perSecond: number; readonly subscribers: number };

/** Measures latencies at a rate far from the limit. */
async function paced(bench: Bench, { sources, perSecond: rate, subscribers }: Pace): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const { runs, warmUps } = bench.options;
  const seconds = bench.scaled(2_000, 200) / 1_000;
  const upstreams = cleanup.use(await startUpstreams());
  const framesOfEach = opening + Math.ceil(((rate * seconds) / sources) * (runs + warmUps) + 10);
  const addresses = await upstreams.call("start", sources, framesOfEach);
  const stack = cleanup.use(
    await startStack(bench, { services: ["ingest", "query", "gateway"], sources: sourcesOf(addresses) }),
  );
  const observer = cleanup.use(await startObserver(stack));
  await settle(upstreams, observer, sources);
  const raw = cleanup.use(await startRaw());
  await raw.call("load", stack.nats.url, 1_000);
  const readers = cleanup.use(await startWorker<typeof sockets>(new URL("../workers/sockets.ts", import.meta.url)));
  if (subscribers > 0)
    await readers.call("subscribe", { http: stack.http, count: subscribers, messages: [subscribeMessage("now")] });
  const processes = { ...stack.processes, generator: upstreams.pid, observer: observer.pid, readers: readers.pid };
  const mine = Object.keys(stack.processes);
  const holds = new LoopHolds(stack);
  const title =
    sources === 1
      ? `ingest at ${rate}/s with query and ${subscribers} subscribers`
      : `ingest, ${sources} sources at ${rate / sources}/s each`;
  const isOne = sources === 1;
  const calibration = "raw publishes at the same rate, to the acknowledgement";
  await bench.compare({
    figures: [
      {
        name: `${title}: upstream to log, p50`,
        unit: "ms",
        calibration,
        of: value("p50"),
        targets: isOne ? [{ of: "value", atMost: 2 }] : [],
      },
      {
        name: `${title}: upstream to log, p99`,
        unit: "ms",
        calibration,
        of: value("p99"),
        targets: [{ of: "value", atMost: isOne ? 10 : 25 }],
      },
      {
        name: `${title}: all processes`,
        unit: "cores",
        calibration: "the same: publisher and log's server",
        of: cores(mine),
        against: cores(["nats", "publisher"]),
        targets: [{ of: "value", atMost: isOne ? 0.6 : 1 }],
      },
    ],
    clients: ["generator", "observer", "readers", "publisher"],
    run: () =>
      holds.during(() =>
        sampled(processes, async () => {
          const { emitted, count, wallMs } = await upstreams.call("pace", rate, seconds);
          await observer.call("sawFrames", count);
          const took = latencies(emitted, await observer.call("take"));
          if (took.length !== count) throw new Error(`${took.length} of ${count} frames were recorded`);
          return { count, wallMs, values: percentiles(took) };
        }),
      ),
    calibrate: () =>
      sampled({ nats: stack.processes.nats ?? 0, publisher: raw.pid }, async () => {
        const { due, acknowledged } = await raw.call("pace", rate, seconds);
        const took = latencies(due, acknowledged);
        return { count: took.length, values: percentiles(took) };
      }),
  });
  holds.report(bench, title);
}
