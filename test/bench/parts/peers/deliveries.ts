import { latencies } from "../../frame/arrivals.ts";
import type { Bench } from "../../frame/bench.ts";
import { percentiles } from "../../frame/percentiles.ts";
import type { Processes } from "../../frame/processor-time.ts";
import type { Figure } from "../../frame/row.ts";
import { perSecond, type Sample, sampled, value } from "../../frame/sample.ts";
import { Seeder } from "../../frame/seed.ts";
import { type Stack, startStack } from "../../frame/stack.ts";
import { connected, opening, recordedTo, sourcesOf, startUpstreams } from "../../frame/upstreams.ts";
import { subscribeMessage } from "../../frame/web-socket.ts";
import { startWorker, type Worker } from "../../frame/worker.ts";
import type * as nchanPublisher from "../../workers/nchan-publisher.ts";
import type * as skaffold from "../../workers/skaffold.ts";
import type * as sockets from "../../workers/sockets.ts";
import { type Peers, type RedisPeer, startRedisClient } from "./found.ts";
import { loggedFrames } from "./logged.ts";
import { Missing, type PeerServer } from "./servers.ts";

const rate = 1_000;
/** How long to wait for deliveries after the last event. */
const timeoutMs = 10_000;

/** Measures live delivery to many readers. */
export async function deliveries(bench: Bench, { redis, nchan }: Peers): Promise<void> {
  await using scene = await Scene.begin(bench);
  const { many, few } = scene;
  const beside = { redis: `beside Redis Streams: ${few} readers at ${rate}/s`, nchan: `beside nginx with nchan:` };
  const redisFigures = latencyFigures(beside.redis, "Redis Streams, XADD to XREAD BLOCK of each reader");
  const nchanFigures = latencyFigures(`${beside.nchan} ${few} readers at ${rate}/s`, "nchan, POST to WebSocket");
  const fanout = {
    name: `${beside.nchan} fan-out to ${many} WebSockets`,
    unit: "deliveries/s",
    of: perSecond,
    targets: [],
    calibration: "nchan, POST of the same messages; kept in memory only",
  };
  if (redis instanceof Missing) for (const figure of redisFigures) bench.skip(figure, redis.why);
  else await scene.liveBesideRedis(redis, redisFigures);
  if (nchan instanceof Missing) for (const figure of [...nchanFigures, fanout]) bench.skip(figure, nchan.why);
  else await scene.besideNchan(nchan, nchanFigures, fanout);
}

function latencyFigures(title: string, calibration: string): readonly Figure[] {
  return (["p50", "p99"] as const).map((part) => ({
    name: `${title}, ${part}`,
    unit: "ms",
    calibration,
    of: value(part),
    targets: [],
  }));
}

/** The whole of Tapedeck with one upstream, its readers, and those of a peer. */
class Scene implements AsyncDisposable {
  readonly #bench: Bench;
  readonly #cleanup: AsyncDisposableStack;
  readonly #stack: Stack;
  readonly #upstreams: Worker<typeof skaffold>;
  readonly #readers: Worker<typeof sockets>;
  readonly #peerReaders: Worker<typeof sockets>;
  readonly many: number;
  readonly few: number;

  private constructor(
    bench: Bench,
    cleanup: AsyncDisposableStack,
    stack: Stack,
    upstreams: Worker<typeof skaffold>,
    readers: readonly [Worker<typeof sockets>, Worker<typeof sockets>],
  ) {
    [this.#bench, this.#cleanup, this.#stack, this.#upstreams] = [bench, cleanup, stack, upstreams];
    [this.#readers, this.#peerReaders] = readers;
    [this.many, this.few] = [bench.scaled(1_000, 20), bench.scaled(50, 5)];
  }

  static async begin(bench: Bench): Promise<Scene> {
    await using cleanup = new AsyncDisposableStack();
    const { runs, warmUps } = bench.options;
    const upstreams = cleanup.use(await startUpstreams());
    const frames = opening + Math.ceil(rate * secondsOf(bench) * (runs + warmUps) * 2) + 10;
    const sources = sourcesOf(await upstreams.call("start", 1, frames));
    const stack = cleanup.use(await startStack(bench, { services: ["ingest", "query", "gateway"], sources }));
    await connected(upstreams, 1);
    await upstreams.call("playTo", opening);
    await recordedTo(stack, opening);
    const [readers, peerReaders] = [cleanup.use(await startSockets()), cleanup.use(await startSockets())];
    const scene = new Scene(bench, cleanup.move(), stack, upstreams, [readers, peerReaders]);
    const messages = [subscribeMessage("now")];
    await readers.call("subscribe", { http: stack.http, count: scene.few, messages, timed: true });
    return scene;
  }

  async liveBesideRedis(redis: RedisPeer, figures: readonly Figure[]): Promise<void> {
    await using listener = await startRedisClient();
    const { client: publisher } = redis;
    const texts = (await this.#texts()).map((text) => Buffer.from(text));
    await publisher.call("open", redis.port, "live", texts);
    await listener.call("listen", redis.port, "live", this.few);
    const processes = { redis: redis.pid, publisher: publisher.pid, readers: listener.pid };
    await this.#bench.compare({
      figures,
      clients: ["generator", "publisher", "readers"],
      run: () => this.#live(),
      calibrate: () =>
        sampled(processes, async () => {
          const { due } = await publisher.call("pace", rate, secondsOf(this.#bench));
          return this.#arrived(latencies(due, await listener.call("cameWithin", this.#expected, timeoutMs)));
        }),
    });
  }

  async besideNchan(nchan: PeerServer, figures: readonly Figure[], fanout: Figure): Promise<void> {
    await using publisher = await startWorker<typeof nchanPublisher>(
      new URL("../../workers/nchan-publisher.ts", import.meta.url),
    );
    const http = `127.0.0.1:${nchan.port}`;
    const texts = await this.#texts();
    const processes = { nchan: nchan.pid, publisher: publisher.pid, readers: this.#peerReaders.pid };
    await this.#peerReaders.call("subscribe", { http, path: "/subscribe/events", count: this.few, timed: true });
    await this.#bench.compare({
      figures,
      clients: ["generator", "publisher", "readers"],
      run: () => this.#live(),
      calibrate: () =>
        sampled(processes, async () => {
          const seconds = secondsOf(this.#bench);
          const due = await publisher.call("pace", `http://${http}/publish/events`, texts[0] ?? "", rate, seconds);
          await this.#peerReaders.call("framesWithin", this.#expected, timeoutMs);
          return this.#arrived(latencies(due, await this.#peerReaders.call("sightings")));
        }),
    });
    await this.#fanOut(fanout, http, processes, (count) =>
      publisher.call("broadcast", `http://${http}/publish/events`, texts, count),
    );
  }

  /** Replaces the open sockets with so many on each side. */
  async #fanOut(
    figure: Figure,
    http: string,
    processes: Processes,
    publish: (count: number) => Promise<void>,
  ): Promise<void> {
    const [readers, peerReaders, stack] = [this.#readers, this.#peerReaders, this.#stack];
    await Promise.all([readers.call("closeAll"), peerReaders.call("closeAll")]);
    const seeder = await Seeder.begin(this.#bench, stack.log, "fanout");
    const { source } = await seeder.write(100);
    const messages = [subscribeMessage("now", { sources: [source] })];
    await readers.call("subscribe", { http: stack.http, count: this.many, messages });
    await peerReaders.call("subscribe", { http, path: "/subscribe/events", count: this.many });
    const events = this.#bench.scaled(300, 20);
    const fanned = async (clients: Worker<typeof sockets>, send: () => Promise<unknown>) => {
      await clients.call("reset");
      const done = clients.call("arrived", events * this.many);
      await send();
      return { count: (await done).count };
    };
    await this.#bench.compare({
      figures: [figure],
      clients: ["publisher", "readers"],
      run: () =>
        sampled({ ...stack.processes, readers: readers.pid }, () => fanned(readers, () => seeder.write(events))),
      calibrate: () => sampled(processes, () => fanned(peerReaders, () => publish(events))),
    });
  }

  /** Measures from the upstream's message to each reader. */
  #live(): Promise<Sample> {
    const processes = { ...this.#stack.processes, generator: this.#upstreams.pid, readers: this.#readers.pid };
    return sampled(processes, async () => {
      const { emitted } = await this.#upstreams.call("pace", rate, secondsOf(this.#bench));
      await this.#readers.call("framesWithin", this.#expected, timeoutMs);
      return this.#arrived(latencies(emitted, await this.#readers.call("sightings")));
    });
  }

  #arrived(took: Float64Array): { count: number; values: ReturnType<typeof percentiles> } {
    if (took.length !== this.#expected) throw new Error(`${took.length} of ${this.#expected} deliveries came in time`);
    return { count: took.length / this.few, values: percentiles(took) };
  }

  get #expected(): number {
    return Math.round(rate * secondsOf(this.#bench)) * this.few;
  }

  /** The messages for a peer's readers: the same events in the same form. */
  async #texts(): Promise<readonly string[]> {
    return (await loggedFrames(this.#stack)).map(({ json }) => `{"type":"event","event":${json}}`);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#cleanup.disposeAsync();
  }
}

const startSockets = (): Promise<Worker<typeof sockets>> =>
  startWorker<typeof sockets>(new URL("../../workers/sockets.ts", import.meta.url));
const secondsOf = (bench: Bench): number => bench.scaled(2_000, 200) / 1_000;
