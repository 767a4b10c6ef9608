import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { startWorker } from "../frame/worker.ts";
import type * as grpcStream from "../workers/grpc-stream.ts";

const getState = "/proto.SkaffoldService/GetState";

/**
 * Queries the state of a session with as many events as the given size: now, and at random positions. Then compares its newest
 * loop with the last good one, and with one at a random position.
 */
export async function state(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const { source, positionAt } = await seed(bench, stack.log, bench.part, bench.options.size);
  await tablesCaughtUp(stack);
  const grpc = cleanup.use(await startWorker<typeof grpcStream>(new URL("../workers/grpc-stream.ts", import.meta.url)));
  const times = cleanup.use(await RequestTimes.start(bench, stack, { "gRPC client": grpc.pid }));
  const { state: found } = await times.body<{ state: { v1?: { buildState?: object } } }>(
    `/api/v1/state?${new URLSearchParams({ source })}`,
  );
  if (found.v1?.buildState === undefined) throw new Error("the state is empty");
  const overGrpc = (heads: readonly Readonly<Record<string, string>>[]) => (count: number) =>
    grpc.call("unaryTimes", stack.grpc, getState, heads, count);
  const path = (more: Readonly<Record<string, string>>) => `/api/v1/state?${new URLSearchParams({ source, ...more })}`;
  const positions = Array.from({ length: 500 }, (_, index) => positionAt(spreadOver(index)));
  const heads = positions.map((at) => ({ "tapedeck-source": source, "tapedeck-at": at }));
  // A service that runs for a day is warm: the code of a call is still being compiled for some two thousand calls.
  const now = { count: bench.scaled(300, 5), warmUps: bench.isTiny ? 1 : 7, atMost: 3 };
  const past = { count: bench.scaled(60, 3), atMost: 30 };

  await times.measure({ name: "GetState now, gRPC", ask: overGrpc([{ "tapedeck-source": source }]), ...now });
  await times.measure({ name: "GetState now, HTTP", ask: times.http([path({})]), ...now });
  await times.measure({ name: "GetState at a random position, gRPC", ask: overGrpc(heads), ...past });
  const paths = positions.map((at) => path({ at }));
  await times.measure({ name: "GetState at a random position, HTTP", ask: times.http(paths), ...past });
  const compare = (left: string, right?: string) =>
    `/api/v1/compare?${new URLSearchParams({ left, ...(right !== undefined && { right }) })}`;
  const { right } = await times.body<{ right: object | null }>(compare(source));
  if (right === null) throw new Error("there is nothing to compare with");
  const compared = { count: bench.scaled(30, 3), atMost: 1_000 };
  await times.measure({
    name: "Compare with the last good loop, HTTP",
    ask: times.http([compare(source)]),
    ...compared,
  });
  // The source has a session from some events on.
  const later = positions.map((_, index) => positionAt(0.5 + spreadOver(index) / 2));
  const pairs = later.map((at) => compare(source, `${source}@${at}`));
  await times.measure({ name: "Compare with a random position, HTTP", ask: times.http(pairs), ...compared });
  times.report("state");
}

/**
 * Spreads evenly, in no order: the fractional parts of multiples of the golden ratio. Never returns the very beginning.
 */
function spreadOver(index: number): number {
  return 0.01 + 0.99 * ((index * 0.618_033_988_75) % 1);
}
