import { until } from "@tapedeck/shared/testing/until";
import type { Bench } from "../frame/bench.ts";
import { proportionalMiB, readProcessorTimes, residentMiB, since } from "../frame/processor-time.ts";
import type { Sample } from "../frame/sample.ts";
import { cores, sampled, value } from "../frame/sample.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { connected, sourcesOf, startUpstreams } from "../frame/upstreams.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { startWorker } from "../frame/worker.ts";
import type * as bareWebSocket from "../workers/bare-web-socket.ts";
import type * as sockets from "../workers/sockets.ts";
import { statusCommand } from "./status-command.ts";

/** The bound of the three services together. */
const maxMiB = 220;

/** Measures what Tapedeck uses while nothing happens. */
export async function idle(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const upstreams = cleanup.use(await startUpstreams());
  const sources = sourcesOf(await upstreams.call("start", 1, 100));
  const services = ["ingest", "query", "gateway"] as const;
  const stack = cleanup.use(await startStack(bench, { services, sources, bare: true, asUp: true }));
  await connected(upstreams, 1);
  await upstreams.call("playTo", 100);
  if (!bench.isTiny) await quiet(stack);
  await oneSource(bench, stack);
  const memory = (pids: readonly number[]) => [pids.reduce((sum, pid) => sum + proportionalMiB(pid), 0)];
  const ofServices = services.map((name) => stack.processes[name] ?? 0);
  bench.add(
    {
      name: "memory of ingest, query and gateway together, idle, as `tapedeck up` starts them from a checkout",
      unit: "MiB",
      calibration: "a bare Node process",
      targets: [{ of: "value", atMost: maxMiB }],
    },
    memory(ofServices),
    memory([stack.idlePid]),
  );
  await statusCommand(bench, stack);
  await subscribers(bench, stack);
}

async function oneSource(bench: Bench, stack: Stack): Promise<void> {
  const ms = bench.scaled(5_000, 200);
  const wait = async (pids: Readonly<Record<string, number>>): Promise<Sample> =>
    sampled(pids, async () => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      return { count: 1 };
    });
  await bench.compare({
    figures: [
      {
        name: "processor time with one idle source, all processes",
        unit: "% of a core",
        calibration: "a bare Node process with a timer of 5 ms",
        of: (sample) => 100 * cores(Object.keys(sample.cpuMs))(sample),
        targets: [{ of: "value", atMost: 1 }],
      },
    ],
    run: () => wait(stack.processes),
    calibrate: () => wait({ idle: stack.idlePid }),
  });
}

/**
 * Measures the memory of a subscriber that waits for events that never come. Each run has a fresh process of its own.
 */
async function subscribers(bench: Bench, stack: Stack): Promise<void> {
  const count = bench.scaled(5_000, 50);
  const grown = async (pid: number, open: () => Promise<void>): Promise<Sample> => {
    const before = residentMiB(pid);
    return sampled({ server: pid }, async () => {
      await open();
      return { count, values: { KiB: ((residentMiB(pid) - before) * 1_024) / count } };
    });
  };
  const clientsOf = () => startWorker<typeof sockets>(new URL("../workers/sockets.ts", import.meta.url));
  const message = subscribeMessage("now", { kinds: ["session.erased"] });
  await bench.compare({
    figures: [
      {
        name: `memory of an idle WebSocket subscriber, of ${count}`,
        unit: "KiB",
        calibration: "bare ws",
        of: value("KiB"),
        targets: [{ of: "ratio", atMost: 1.5 }],
      },
    ],
    async run() {
      await using cleanup = new AsyncDisposableStack();
      const gateway = cleanup.use(
        await bench.startService("gateway", {
          TAPEDECK_NATS_URL: stack.nats.url,
          TAPEDECK_SERVICES_KEY: "bench",
          TAPEDECK_QUERY_ADDRESS: stack.services.query?.addresses.grpc ?? "",
          TAPEDECK_INGEST_ADDRESS: stack.services.ingest?.addresses.grpc ?? "",
        }),
      );
      const clients = cleanup.use(await clientsOf());
      const http = gateway.addresses.http ?? "";
      // The first connection loads what all connections need.
      await clients.call("subscribe", { http, count: 1, messages: [message] });
      return await grown(gateway.pid, () => clients.call("subscribe", { http, count, messages: [message] }));
    },
    async calibrate() {
      await using cleanup = new AsyncDisposableStack();
      const bare = cleanup.use(
        await startWorker<typeof bareWebSocket>(new URL("../workers/bare-web-socket.ts", import.meta.url)),
      );
      const clients = cleanup.use(await clientsOf());
      const http = await bare.call("start");
      await clients.call("subscribe", { http, path: "/", count: 1 });
      return await grown(bare.pid, async () => {
        await clients.call("subscribe", { http, path: "/", count });
        const open = async () => (await bare.call("connected")) === count + 1;
        await until(open, { message: "all to be connected" });
      });
    },
  });
}

/** Resolves when startup work is done: for half a second all processes together use next to no processor time. */
async function quiet({ processes }: Stack): Promise<void> {
  const isQuiet = async () => {
    const before = readProcessorTimes(processes);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return Object.values(since(before, readProcessorTimes(processes))).every((ms) => ms <= 30);
  };
  await until(isQuiet, { message: "the services to have nothing to do" });
}
