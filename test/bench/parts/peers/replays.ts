import type { Bench } from "../../frame/bench.ts";
import { tablesCaughtUp } from "../../frame/caught-up.ts";
import { perSecond, type Sample, sampled } from "../../frame/sample.ts";
import { seed } from "../../frame/seed.ts";
import { startStack } from "../../frame/stack.ts";
import { subscribeMessage } from "../../frame/web-socket.ts";
import { startWorker } from "../../frame/worker.ts";
import type * as nchanPublisher from "../../workers/nchan-publisher.ts";
import type * as sockets from "../../workers/sockets.ts";
import type { Peers } from "./found.ts";
import { loggedFrames } from "./logged.ts";
import { Missing, nchanKeeps } from "./servers.ts";

const messages = { unit: "messages/s", of: perSecond, targets: [] } as const;
const figures = {
  redis: {
    name: "beside Redis Streams: replay, one client",
    ...messages,
    calibration: "Redis Streams, XRANGE of the same JSON in pages of 1,000",
  },
  emmett: {
    name: "beside Emmett on Postgres: replay, one client",
    ...messages,
    calibration: "Emmett's event store, readStream of the same JSON in pages of 1,000",
  },
  nchan: {
    name: "beside nginx with nchan: replay, one client",
    ...messages,
    calibration: "nchan, a WebSocket that resumes from the oldest message; kept in memory only",
  },
} as const;

/** One client reads a session from its beginning. Tapedeck's client connects over WebSocket. */
export async function replays(bench: Bench, { redis, emmett, nchan }: Peers): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const { source, events } = await seed(bench, stack.log, "peers", Math.min(bench.options.size, nchanKeeps - 100));
  await tablesCaughtUp(stack);
  const client = cleanup.use(await startWorker<typeof sockets>(new URL("../../workers/sockets.ts", import.meta.url)));
  const message = subscribeMessage("start", { sources: [source] });
  const run = (): Promise<Sample> =>
    sampled({ ...stack.processes, client: client.pid }, () =>
      client.call("readOnce", stack.http, "/api/v1/ws", message, events),
    );
  const texts = (await loggedFrames(stack)).map(({ json }) => json);

  if (redis instanceof Missing) bench.skip(figures.redis, redis.why);
  else {
    await redis.client.call(
      "open",
      redis.port,
      "replayed",
      texts.map((text) => Buffer.from(text)),
    );
    await redis.client.call("append", events);
    const processes = { redis: redis.pid, client: redis.client.pid };
    const calibrate = () => sampled(processes, () => redis.client.call("read", events));
    await bench.compare({ figures: [figures.redis], clients: ["client"], run, calibrate });
  }

  if (nchan instanceof Missing) bench.skip(figures.nchan, nchan.why);
  else {
    const publisher = cleanup.use(
      await startWorker<typeof nchanPublisher>(new URL("../../workers/nchan-publisher.ts", import.meta.url)),
    );
    const http = `127.0.0.1:${nchan.port}`;
    const published = texts.map((text) => `{"type":"event","event":${text}}`);
    await publisher.call("broadcast", `http://${http}/publish/resumed`, published, events);
    const calibrate = () =>
      sampled({ nchan: nchan.pid, client: client.pid }, () =>
        client.call("readOnce", http, "/resume/resumed", undefined, events),
      );
    await bench.compare({ figures: [figures.nchan], clients: ["client"], run, calibrate });
  }

  cleanup.defer(() => emmett.call("close"));
  await emmett.call("open", stack.database, "replayed", texts);
  await emmett.call("append", events);
  const calibrate = () =>
    sampled({ postgres: stack.processes.postgres ?? 0, client: emmett.pid }, async () => ({
      count: await emmett.call("read", events),
    }));
  await bench.compare({ figures: [figures.emmett], clients: ["client"], run, calibrate });
}
