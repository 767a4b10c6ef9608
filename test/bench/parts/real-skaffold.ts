import { join } from "node:path";
import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { treeOf } from "../frame/processor-time.ts";
import type { Target } from "../frame/row.ts";
import { type Ran, sampled } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { SkaffoldDev } from "../frame/skaffold-dev.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { pin, startWorker, type Worker } from "../frame/worker.ts";
import type * as sockets from "../workers/sockets.ts";
import { others, type Readers, readersOf } from "./harm.ts";

/** Measures how much recording and reading slow down a dev loop of the real Skaffold. It has a core of its own. */
export async function realSkaffold(bench: Bench): Promise<void> {
  const { skaffold: project } = bench.options;
  if (project === undefined) throw new Error("a real Skaffold is measured in a project: --project FOLDER --touch FILE");
  await using cleanup = new AsyncDisposableStack();
  const folder = await bench.newFolder("projects");
  const start = async (name: string) =>
    cleanup.use(await SkaffoldDev.start({ project, into: join(folder, name), cores: "0" }));
  const [recorded, alone] = [await start("recorded"), await start("alone")];
  const sources = [{ developer: "dev-0", address: recorded.address }];
  const stack = cleanup.use(await startStack(bench, { services: ["ingest", "query", "gateway"], sources }));
  // More than the kernel buffers for a socket that is not read.
  await seed(bench, stack.log, bench.part, 20_000);
  await tablesCaughtUp(stack);
  for (const pid of Object.values(stack.processes).flatMap(treeOf)) pin(pid, others);
  const module = new URL("../workers/sockets.ts", import.meta.url);
  const readers = cleanup.use(await startWorker<typeof sockets>(module, others));
  for (const group of readersOf(bench)) await measure(bench, { stack, recorded, alone, readers }, group);
  await withStalledReader(bench, recorded, alone);
}

type Scene = {
  readonly stack: Stack;
  readonly recorded: SkaffoldDev;
  readonly alone: SkaffoldDev;
  readonly readers: Worker<typeof sockets>;
};

const calibration = "the same loop of a Skaffold that nobody reads";

async function measure(bench: Bench, scene: Scene, { name, count, stalled = false }: Readers): Promise<void> {
  const { stack, recorded, alone, readers } = scene;
  await readers.call("closeAll");
  if (stalled) await readers.call("subscribeAndStall", stack.http, count, subscribeMessage("start"));
  else if (count > 0) await readers.call("subscribe", { http: stack.http, count, messages: [subscribeMessage("now")] });
  const targets: readonly Target[] = [{ of: "ratio", atMost: 1.05 }];
  await bench.compare({
    figures: [
      { name: `a dev loop of a real Skaffold, ${name}`, unit: "ms", calibration, of: ({ wallMs }) => wallMs, targets },
    ],
    clients: ["readers"],
    runs: 2 * bench.options.runs,
    run: () =>
      sampled({ ...stack.processes, skaffold: recorded.pid, readers: readers.pid }, async () => {
        await readers.call("reset");
        return loopOf(recorded);
      }),
    calibrate: () => sampled({ skaffold: alone.pid }, () => loopOf(alone)),
  });
}

async function loopOf(skaffold: SkaffoldDev): Promise<Ran> {
  const wallMs = await skaffold.loop();
  if (wallMs === undefined) throw new Error("a loop of Skaffold did not end");
  return { count: 1, wallMs };
}

/** A loop that has not ended by then counts as stopped, not slow. */
const stoppedMs = 30_000;

/** Runs without Tapedeck: one client of Skaffold's own API stops reading. */
async function withStalledReader(bench: Bench, beside: SkaffoldDev, skaffold: SkaffoldDev): Promise<void> {
  await skaffold.readAndStall();
  const [loops, calibrations]: [number[], number[]] = [[], []];
  while (loops.length < 2 * bench.options.runs) {
    calibrations.push((await loopOf(beside)).wallMs ?? Number.NaN);
    const wallMs = await skaffold.loop(stoppedMs);
    loops.push(wallMs ?? stoppedMs);
    if (wallMs === undefined) break;
  }
  const isStopped = loops.at(-1) === stoppedMs;
  bench.add(
    {
      name: `a dev loop of a real Skaffold without Tapedeck, one stalled reader of its own API${
        isStopped ? `: the loop ${loops.length} of them had not ended after this time` : ""
      }`,
      unit: "ms",
      calibration: "the same loop of a Skaffold that Tapedeck reads",
      targets: [],
    },
    isStopped ? loops.slice(-1) : loops,
    isStopped ? calibrations.slice(-1) : calibrations,
  );
}
