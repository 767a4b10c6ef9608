import type { Bench } from "../frame/bench.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { cpuPerEvent, type Sample, sampled } from "../frame/sample.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { opening, settle, sourcesOf, startObserver, startUpstreams } from "../frame/upstreams.ts";
import { startWorker } from "../frame/worker.ts";
import type * as sinkReceiver from "../workers/sink-receiver.ts";

const rate = 1_000;
const own = cpuPerEvent(["gateway", "nats"]);

/** Measures what a sink of all events costs at 1,000/s: the gateway and NATS with it, less the same while it is paused. */
export async function sinks(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const { runs, warmUps } = bench.options;
  const seconds = bench.scaled(10, 0.5);
  const upstreams = cleanup.use(await startUpstreams());
  const frames = opening + Math.ceil(rate * seconds * (runs + warmUps) * 3) + 10;
  const sources = sourcesOf(await upstreams.call("start", 1, frames));
  const receiver = cleanup.use(
    await startWorker<typeof sinkReceiver>(new URL("../workers/sink-receiver.ts", import.meta.url)),
  );
  const target = await receiver.call("start");
  const stack = cleanup.use(
    await startStack(bench, {
      services: ["ingest", "query", "gateway"],
      sources,
      env: { TAPEDECK_GATEWAY_SINK_HOSTS: target },
    }),
  );
  const observer = await startObserver(stack);
  await settle(upstreams, observer, 1);
  await observer[Symbol.asyncDispose]();
  const holds = new LoopHolds(stack);
  const pace = (arrived: (events: number) => Promise<unknown>): Promise<Sample> =>
    holds.during(() =>
      sampled({ ...stack.processes, receiver: receiver.pid }, async () => {
        const { count, wallMs } = await upstreams.call("pace", rate, seconds);
        await arrived(count);
        return { count, wallMs };
      }),
    );
  const without = async () => {};
  const delivered = (events: number) => receiver.call("received", events);
  const costs: Record<"delivering" | "paused" | "none", number[]> = { delivering: [], paused: [], none: [] };
  for (let run = 0; run < runs + warmUps; run++) {
    const none = own(await pace(without));
    await call(stack, "", {
      name: "bench",
      target: `http://${target}/`,
      format: "webhook",
      mode: "batched",
      start: "now",
      headers: {},
      filter: {},
    });
    const delivering = own(await pace(delivered));
    await call(stack, "/bench/pause");
    const paused = own(await pace(without));
    await call(stack, "/bench", undefined, "DELETE");
    if (run < warmUps) continue;
    costs.delivering.push(delivering - none);
    costs.paused.push(paused - none);
    costs.none.push(none);
  }
  const line = { unit: "µs more", calibration: "an event in the gateway and NATS without a sink" };
  bench.add(
    { ...line, name: "a sink of all events that keeps up, at 1000/s", targets: [{ of: "value", atMost: 60 }] },
    costs.delivering,
    costs.none,
  );
  bench.add({ ...line, name: "… that is paused", targets: [] }, costs.paused, costs.none);
  holds.report(bench, "a sink");
}

async function call({ http }: Stack, path: string, body?: object, method = "POST"): Promise<void> {
  const response = await fetch(`http://${http}/api/v1/sinks${path}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  if (!response.ok) throw new Error(`${method} /sinks${path}: ${response.status} ${await response.text()}`);
}
