import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { perSecond, sampled } from "../frame/sample.ts";
import { Seeder } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { startWorker } from "../frame/worker.ts";
import type * as bareWebSocket from "../workers/bare-web-socket.ts";
import type * as sockets from "../workers/sockets.ts";

/** Sends every event to each of 1,000 sockets, as fast as the gateway delivers. */
export async function fanout(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const subscribers = bench.scaled(1_000, 20);
  const events = bench.scaled(300, 20);
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const seeder = await Seeder.begin(bench, stack.log, bench.part);
  const { source } = await seeder.write(400);
  await tablesCaughtUp(stack);
  const worker = () => startWorker<typeof sockets>(new URL("../workers/sockets.ts", import.meta.url));
  // Two clients, so that the calibration's sockets and the figure's do not wait in the same process.
  const [clients, bareClients] = [cleanup.use(await worker()), cleanup.use(await worker())];
  const bare = cleanup.use(
    await startWorker<typeof bareWebSocket>(new URL("../workers/bare-web-socket.ts", import.meta.url)),
  );
  const message = subscribeMessage("now", { sources: [source] });
  await clients.call("subscribe", { http: stack.http, count: subscribers, messages: [message] });
  await bareClients.call("subscribe", { http: await bare.call("start"), path: "/", count: subscribers });
  const holds = new LoopHolds(stack);
  let texts: readonly string[] = [];
  await bench.compare({
    figures: [
      {
        name: `fan-out of all events to ${subscribers} WebSockets`,
        unit: "deliveries/s",
        of: perSecond,
        calibration: "bare ws broadcast of the same messages",
        targets: [{ of: "ratio", atLeast: 0.8 }],
      },
    ],
    clients: ["clients"],
    run: () =>
      holds.during(() =>
        sampled({ ...stack.processes, clients: clients.pid }, async () => {
          await clients.call("reset");
          await seeder.write(events);
          const { count } = await clients.call("arrived", events * subscribers);
          texts = await clients.call("firstEvents");
          return { count };
        }),
      ),
    calibrate: () =>
      sampled({ server: bare.pid, clients: bareClients.pid }, async () => {
        await bareClients.call("reset");
        const done = bareClients.call("arrived", events * subscribers);
        await bare.call("broadcast", texts, events);
        return { count: (await done).count };
      }),
  });
  holds.report(bench, "fan-out");
}
