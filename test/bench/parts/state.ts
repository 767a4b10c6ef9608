import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { percentiles } from "../frame/percentiles.ts";
import type { Target } from "../frame/row.ts";
import { sampled, value } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { startWorker } from "../frame/worker.ts";
import type * as grpcStream from "../workers/grpc-stream.ts";
import type * as requests from "../workers/requests.ts";

const getState = "/proto.SkaffoldService/GetState";

/** State of a session with as many events as the size says: now, and at random positions. */
export async function state(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const { source, positionAt } = await seed(bench, stack.log, "alice", bench.options.size);
  await tablesCaughtUp(stack);
  const grpc = cleanup.use(await startWorker<typeof grpcStream>(new URL("../workers/grpc-stream.ts", import.meta.url)));
  const http = cleanup.use(await startWorker<typeof requests>(new URL("../workers/requests.ts", import.meta.url)));
  const clients = { "gRPC client": grpc.pid, "HTTP client": http.pid };
  const holds = new LoopHolds(stack);
  const positions = Array.from({ length: 500 }, (_, index) => positionAt(spreadOver(index)));
  const overGrpc = (heads: readonly Record<string, string>[]) => (count: number) =>
    grpc.call("unaryTimes", stack.grpc, getState, heads, count);
  const overHttp = (urls: readonly string[]) => (count: number) => http.call("httpTimes", urls, count);
  const url = (more: Record<string, string>) =>
    `http://${stack.http}/api/v1/state?${new URLSearchParams({ source, ...more })}`;

  const measure = (name: string, ask: (count: number) => Promise<Float64Array>, count: number, atMost: number) =>
    bench.compare({
      figures: (["p50", "p99"] as const).map((part) => ({
        ...{ name: `${name}, ${part}`, unit: "ms", calibration: "one Postgres round trip", of: value(part) },
        targets: part === "p99" ? ([{ of: "value", atMost }] satisfies Target[]) : [],
      })),
      clients: Object.keys(clients),
      run: () =>
        holds.during(() =>
          sampled({ ...stack.processes, ...clients }, async () => ({ count, values: percentiles(await ask(count)) })),
        ),
      calibrate: () =>
        sampled({ postgres: stack.processes.postgres ?? 0, "HTTP client": http.pid }, async () => {
          const times = await http.call("sqlTimes", stack.database, "select 1", count);
          return { count, values: percentiles(times) };
        }),
    });

  const many = bench.scaled(500, 10);
  const some = bench.scaled(100, 5);
  await measure("GetState now, gRPC", overGrpc([{ "tapedeck-source": source }]), many, 3);
  await measure("GetState now, HTTP", overHttp([url({})]), many, 3);
  const heads = positions.map((at) => ({ "tapedeck-source": source, "tapedeck-at": at }));
  await measure("GetState at a random position, gRPC", overGrpc(heads), some, 30);
  await measure("GetState at a random position, HTTP", overHttp(positions.map((at) => url({ at }))), some, 30);
  holds.report(bench, "state");
}

/** Evenly spread and in no order: the fractional parts of multiples of the golden ratio. Never the very beginning. */
function spreadOver(index: number): number {
  return 0.01 + 0.99 * ((index * 0.618_033_988_75) % 1);
}
