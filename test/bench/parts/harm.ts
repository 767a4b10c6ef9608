import { availableParallelism } from "node:os";
import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { treeOf } from "../frame/processor-time.ts";
import type { Target } from "../frame/row.ts";
import { sampled, value } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { opening, recordedTo, settle, sourcesOf, startObserver, startUpstreams } from "../frame/upstreams.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { pin, startWorker, type Worker } from "../frame/worker.ts";
import type * as skaffold from "../workers/skaffold.ts";
import type { Loop } from "../workers/skaffold.ts";
import type * as sockets from "../workers/sockets.ts";

/** Measures how much recording and reading slow down a dev loop, for any number of readers at any speed. */
export async function harm(bench: Bench): Promise<void> {
  await loops(bench, false);
  // On one core all processes compete for time, so their effects can't be separated.
  if (availableParallelism() > 1 && !bench.isTiny) await loops(bench, true);
}

/** Work before each frame. */
const busyMs = 2;

/** The readers during a loop. */
export type Readers = { readonly name: string; readonly count: number; readonly stalled?: boolean };

export const readersOf = (bench: Bench): readonly Readers[] => [
  { name: "no subscriber", count: 0 },
  { name: "1 subscriber", count: 1 },
  { name: `${bench.scaled(100, 5)} subscribers`, count: bench.scaled(100, 5) },
  { name: "5 stalled subscribers", count: 5, stalled: true },
];

/** `pinned`: the upstream has a core to itself, so that only waiting could make it slower. */
async function loops(bench: Bench, pinned: boolean): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const { runs, warmUps } = bench.options;
  const frames = bench.scaled(200, 20);
  const groups = readersOf(bench);
  const needed = opening + frames * (runs + warmUps) * groups.length;
  const upstreams = cleanup.use(await startUpstreams(pinned ? "0" : undefined));
  const alone = cleanup.use(await startUpstreams(pinned ? "0" : undefined));
  const sources = sourcesOf(await upstreams.call("start", 1, needed));
  await alone.call("start", 1, needed);
  const rounds = await alone.call("roundsIn", busyMs);
  const stack = cleanup.use(await startStack(bench, { services: ["ingest", "query", "gateway"], sources }));
  // More than the kernel buffers for a socket that is not read.
  await seed(bench, stack.log, bench.part, bench.scaled(20_000, 200));
  await tablesCaughtUp(stack);
  if (pinned) for (const pid of Object.values(stack.processes).flatMap(treeOf)) pin(pid, others);
  const observer = await startObserver(stack);
  await settle(upstreams, observer, 1);
  await observer[Symbol.asyncDispose]();
  const module = new URL("../workers/sockets.ts", import.meta.url);
  const readers = cleanup.use(await startWorker<typeof sockets>(module, pinned ? others : undefined));
  const holds = new LoopHolds(stack);
  const scene = { upstreams, alone, readers, frames, rounds, pinned, holds };
  for (const group of groups) await measure(bench, stack, scene, group);
  holds.report(bench, `dev loops${pinned ? ", upstream on a core of its own" : ""}`);
}

/** All cores except the upstream's. */
export const others = `1-${availableParallelism() - 1}`;

type Scene = {
  readonly upstreams: Worker<typeof skaffold>;
  readonly alone: Worker<typeof skaffold>;
  readonly readers: Worker<typeof sockets>;
  readonly frames: number;
  readonly rounds: number;
  readonly pinned: boolean;
  readonly holds: LoopHolds;
};

async function measure(
  bench: Bench,
  stack: Stack,
  { upstreams, alone, readers, frames, rounds, pinned, holds }: Scene,
  { name, count, stalled = false }: Readers,
): Promise<void> {
  await readers.call("closeAll");
  if (stalled) await readers.call("subscribeAndStall", stack.http, count, subscribeMessage("start"));
  else if (count > 0) await readers.call("subscribe", { http: stack.http, count, messages: [subscribeMessage("now")] });
  const title = `a dev loop of ${frames} frames, ${name}${pinned ? ", upstream on a core of its own" : ""}`;
  const calibration = "the same loop of an upstream that nobody reads";
  const slower: readonly Target[] = pinned ? [{ of: "ratio", atMost: 1.05 }] : [];
  const ran = ({ waitedMs, ...loop }: Loop) => ({ ...loop, values: { waited: (waitedMs / loop.wallMs) * 100 } });
  await bench.compare({
    figures: [
      { name: title, unit: "ms", calibration, of: ({ wallMs }) => wallMs, targets: slower },
      {
        name: `${title}: waiting for readers`,
        unit: "% of the loop",
        calibration,
        of: value("waited"),
        targets: [{ of: "value", atMost: 5 }],
      },
    ],
    clients: ["readers"],
    run: () =>
      holds.during(() =>
        sampled({ ...stack.processes, upstream: upstreams.pid, readers: readers.pid }, async () => {
          await readers.call("reset");
          const done = await upstreams.call("loop", frames, rounds);
          // The remaining work of one loop must not slow the next one.
          await recordedTo(stack, await upstreams.call("saidSoFar"));
          if (count > 0 && !stalled) await readers.call("arrived", frames * count);
          return ran(done);
        }),
      ),
    calibrate: () => sampled({ upstream: alone.pid }, async () => ran(await alone.call("loop", frames, rounds))),
  });
  const read = stalled ? await readers.call("maxBytesRead") : 0;
  if (read > 256 * 1_024) throw new Error(`a subscriber that should stall has read ${read} bytes`);
}
