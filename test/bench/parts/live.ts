import { latencies } from "../frame/arrivals.ts";
import type { Bench } from "../frame/bench.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { percentiles } from "../frame/percentiles.ts";
import type { Figure, Target } from "../frame/row.ts";
import { cpuPerEvent, sampled, value } from "../frame/sample.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { opening, settle, sourcesOf, startObserver, startRaw, startUpstreams } from "../frame/upstreams.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { startWorker, type Worker } from "../frame/worker.ts";
import type * as bareLive from "../workers/bare-live.ts";
import type * as rawLog from "../workers/raw-log.ts";
import type * as skaffold from "../workers/skaffold.ts";
import type * as sockets from "../workers/sockets.ts";

/** Measures the way from the upstream's message to the subscriber's socket. */
export async function live(bench: Bench): Promise<void> {
  if (!bench.isTiny) await all(bench, bench.scaled(50, 5));
  await some(bench);
}

type Group = {
  readonly subscribers: number;
  /** Each subscriber reads one of so many sources. */
  readonly sources: number;
  readonly targets: Readonly<Record<"p50" | "p99", readonly Target[]>>;
};

const rate = 1_000;
const none = { p50: [], p99: [] };

/** A few subscribers to everything. */
async function all(bench: Bench, subscribers: number): Promise<void> {
  await using scene = await Scene.begin(bench, 1, 1);
  const targets = { p50: atMost(8), p99: atMost(50) };
  await scene.measure({ subscribers, sources: 1, targets });
  scene.report(`${subscribers} subscribers of everything`);
}

/** Many subscribers to one source of fifty each. */
async function some(bench: Bench): Promise<void> {
  const sources = bench.isTiny ? 5 : 50;
  const groups = [100, 1_000, 5_000].slice(0, bench.isTiny ? 1 : 3).map((count) => bench.scaled(count, 10));
  await using scene = await Scene.begin(bench, sources, groups.length);
  for (const [index, subscribers] of groups.entries()) {
    const targets = index === 1 ? { p50: atMost(10), p99: atMost(50) } : none;
    await scene.measure({ subscribers, sources, targets });
  }
  scene.report("subscribers of one source each");
}

/** Upstreams, the whole of Tapedeck and a bare server beside it. */
class Scene implements AsyncDisposable {
  readonly #bench: Bench;
  readonly #cleanup: AsyncDisposableStack;
  readonly #stack: Stack;
  readonly #upstreams: Worker<typeof skaffold>;
  readonly #raw: Worker<typeof rawLog>;
  readonly #bare: Worker<typeof bareLive>;
  readonly #bareHttp: string;
  readonly #holds: LoopHolds;

  private constructor(
    bench: Bench,
    cleanup: AsyncDisposableStack,
    stack: Stack,
    upstreams: Worker<typeof skaffold>,
    raw: Worker<typeof rawLog>,
    bare: Worker<typeof bareLive>,
    bareHttp: string,
  ) {
    [this.#bench, this.#cleanup, this.#stack, this.#upstreams] = [bench, cleanup, stack, upstreams];
    [this.#raw, this.#bare, this.#bareHttp] = [raw, bare, bareHttp];
    this.#holds = new LoopHolds(stack);
  }

  static async begin(bench: Bench, sources: number, groups: number): Promise<Scene> {
    await using cleanup = new AsyncDisposableStack();
    const { runs, warmUps } = bench.options;
    const upstreams = cleanup.use(await startUpstreams());
    const frames = opening + Math.ceil((rate * secondsOf(bench) * (runs + warmUps) * groups) / sources) + 10;
    const addresses = await upstreams.call("start", sources, frames);
    const services = ["ingest", "query", "gateway"] as const;
    const stack = cleanup.use(await startStack(bench, { services, sources: sourcesOf(addresses) }));
    const observer = await startObserver(stack);
    await settle(upstreams, observer, sources);
    await observer[Symbol.asyncDispose]();
    const raw = cleanup.use(await startRaw());
    await raw.call("load", stack.nats.url, 1_000);
    const bare = cleanup.use(await startWorker<typeof bareLive>(new URL("../workers/bare-live.ts", import.meta.url)));
    const bareHttp = await bare.call("start", stack.nats.url);
    return new Scene(bench, cleanup.move(), stack, upstreams, raw, bare, bareHttp);
  }

  async measure({ subscribers, sources, targets }: Group): Promise<void> {
    await using cleanup = new AsyncDisposableStack();
    const seconds = secondsOf(this.#bench);
    const worker = () => startWorker<typeof sockets>(new URL("../workers/sockets.ts", import.meta.url));
    const [readers, bareReaders] = [cleanup.use(await worker()), cleanup.use(await worker())];
    const { processes, http } = this.#stack;
    const expected = Math.round((rate * seconds * subscribers) / sources);
    const messages = Array.from({ length: sources }, (_, index) =>
      subscribeMessage("now", sources === 1 ? {} : { developers: [`dev-${index}`] }),
    );
    let isOpen = false;
    const open = async () => {
      if (isOpen) return;
      isOpen = true;
      await readers.call("subscribe", { http, count: subscribers, messages, timed: true });
      await bareReaders.call("subscribe", { http: this.#bareHttp, path: "/", count: subscribers, timed: true });
      await this.#bare.call("deliverToOneOf", sources);
    };
    await this.#bench.compare({
      figures: figuresOf(subscribers, sources, targets),
      clients: ["generator", "readers", "publisher"],
      run: async () => {
        await open();
        return this.#holds.during(() =>
          sampled({ ...processes, generator: this.#upstreams.pid, readers: readers.pid }, async () => {
            const { emitted, count, wallMs } = await this.#upstreams.call("pace", rate, seconds);
            const came = await readers.call("framesWithin", expected, timeoutMs);
            const took = latencies(emitted, await readers.call("sightings"));
            if (took.length !== expected) throw new Error(`${came} of ${expected} deliveries came in time`);
            return { count, wallMs, values: percentiles(took) };
          }),
        );
      },
      calibrate: () =>
        sampled({ server: this.#bare.pid, publisher: this.#raw.pid, readers: bareReaders.pid }, async () => {
          const { due } = await this.#raw.call("pace", rate, seconds);
          await bareReaders.call("framesWithin", expected, timeoutMs);
          const took = latencies(due, await bareReaders.call("sightings"));
          if (took.length !== expected) throw new Error(`${took.length} of ${expected} bare deliveries came in time`);
          return { count: due.at.length, values: percentiles(took) };
        }),
    });
  }

  report(during: string): void {
    this.#holds.report(this.#bench, during);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#cleanup.disposeAsync();
  }
}

/** How long to wait for deliveries after the last event. */
const timeoutMs = 10_000;
const secondsOf = (bench: Bench): number => bench.scaled(2_000, 200) / 1_000;

function atMost(ms: number): readonly Target[] {
  return [{ of: "value", atMost: ms }];
}

function figuresOf(subscribers: number, sources: number, targets: Group["targets"]): readonly Figure[] {
  const share = sources === 1 ? "everything" : `${Math.round(100 / sources)} % each`;
  const title = `${subscribers} subscribers of ${share} at ${rate}/s`;
  const calibration = "raw record batches, one consumer, bare ws, the same deliveries";
  const took = (part: "p50" | "p99"): Figure => ({
    name: `${title}: upstream to subscriber, ${part}`,
    unit: "ms",
    calibration,
    of: value(part),
    targets: targets[part],
  });
  const cost: Figure = {
    name: `${title}: gateway's time per event`,
    unit: "µs",
    calibration,
    of: cpuPerEvent(["gateway"]),
    against: cpuPerEvent(["server"]),
    targets: [],
  };
  return [took("p50"), took("p99"), cost];
}
