import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { proportionalMiB } from "../frame/processor-time.ts";
import { sampled } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { startWorker } from "../frame/worker.ts";
import type * as httpStream from "../workers/http-stream.ts";

const services = ["ingest", "query", "gateway"] as const;

/** Twice the time after which services collect the garbage of what they did. */
const restMs = 65_000;

/** Measures what is left of a busy hour: the services' memory after all events were projected and replayed. */
export async function memory(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services, asUp: true }));
  const { source, events } = await seed(bench, stack.log, bench.part, bench.options.size);
  await tablesCaughtUp(stack);
  const client = cleanup.use(
    await startWorker<typeof httpStream>(new URL("../workers/http-stream.ts", import.meta.url)),
  );
  const query = new URLSearchParams({ after: "start", source });
  await client.call("read", `http://${stack.http}/api/v1/stream?${query}`, "application/x-ndjson", events);
  const used = () => services.reduce((sum, name) => sum + proportionalMiB(stack.processes[name] ?? 0), 0);
  const busy = used();
  const holds = new LoopHolds(stack);
  await holds.during(() =>
    sampled({}, async () => {
      await new Promise((resolve) => setTimeout(resolve, bench.isTiny ? 1 : restMs));
      return { count: 1 };
    }),
  );
  const idle = [proportionalMiB(stack.idlePid)];
  const line = { unit: "MiB", calibration: "a bare Node process" };
  bench.add(
    { ...line, name: "memory of ingest, query and gateway after all was projected and replayed", targets: [] },
    [busy],
    idle,
  );
  bench.add({ ...line, name: "… at rest a minute later", targets: [{ of: "value", atMost: 350 }] }, [used()], idle);
  holds.report(bench, "rest");
}
