import type * as requests from "../workers/requests.ts";
import type { Bench } from "./bench.ts";
import { LoopHolds } from "./loop-holds.ts";
import { percentiles } from "./percentiles.ts";
import type { Processes } from "./processor-time.ts";
import { sampled, value } from "./sample.ts";
import type { Stack } from "./stack.ts";
import { startWorker, type Worker } from "./worker.ts";

/** A question, asked again and again by one client. */
export type Question = {
  readonly name: string;
  /** Resolves with the time of each answer in ms, ascending. */
  readonly ask: (count: number) => Promise<Float64Array>;
  readonly count: number;
  /** Bound of the p99 in ms. */
  readonly atMost: number;
  /** Instead of the scale's. */
  readonly warmUps?: number;
};

/** Measures how long answers take. Each is held against a round trip to the same Postgres. */
export class RequestTimes implements AsyncDisposable {
  readonly #bench: Bench;
  readonly #stack: Stack;
  readonly #clients: Processes;
  readonly #holds: LoopHolds;
  /** A client for HTTP and SQL. */
  readonly client: Worker<typeof requests>;

  private constructor(bench: Bench, stack: Stack, client: Worker<typeof requests>, clients: Processes) {
    [this.#bench, this.#stack, this.client] = [bench, stack, client];
    this.#clients = { client: client.pid, ...clients };
    this.#holds = new LoopHolds(stack);
  }

  /** `clients`: further processes of the bench that ask. */
  static async start(bench: Bench, stack: Stack, clients: Processes = {}): Promise<RequestTimes> {
    const client = await startWorker<typeof requests>(new URL("../workers/requests.ts", import.meta.url));
    return new RequestTimes(bench, stack, client, clients);
  }

  http(paths: readonly string[]): Question["ask"] {
    const urls = paths.map((path) => `http://${this.#stack.http}${path}`);
    return (count) => this.client.call("httpTimes", urls, count);
  }

  /** The body of one answer, for a check that the question means something. */
  async body<T>(path: string): Promise<T> {
    return JSON.parse(await this.client.call("httpText", `http://${this.#stack.http}${path}`)) as T;
  }

  /** Calls a tool of /mcp. */
  mcp(name: string, args: object): Question["ask"] {
    return (count) => this.client.call("mcpTimes", `http://${this.#stack.http}/mcp`, { name, arguments: args }, count);
  }

  sql(statement: string): Question["ask"] {
    return (count) => this.client.call("sqlTimes", this.#stack.database, statement, count);
  }

  /** Two lines: the median and the 99th percentile. */
  async measure({ name, ask, count, atMost, ...warm }: Question): Promise<void> {
    const { processes } = this.#stack;
    const calibration = "one Postgres round trip";
    await this.#bench.compare({
      ...warm,
      figures: [
        { name: `${name}, p50`, unit: "ms", calibration, of: value("p50"), targets: [] },
        { name: `${name}, p99`, unit: "ms", calibration, of: value("p99"), targets: [{ of: "value", atMost }] },
      ],
      clients: Object.keys(this.#clients),
      run: async () => {
        // A question that takes seconds is not asked a hundred times.
        const [first = 0] = await ask(1);
        const times = Math.max(1, Math.min(count, Math.floor(maxMs / first)));
        return this.#holds.during(() =>
          sampled({ ...processes, ...this.#clients }, async () => {
            const took = await ask(times);
            return { count: took.length, values: percentiles(took) };
          }),
        );
      },
      calibrate: () =>
        sampled({ postgres: processes.postgres ?? 0, client: this.client.pid }, async () => {
          const took = await this.sql("select 1")(count);
          return { count: took.length, values: percentiles(took) };
        }),
    });
  }

  report(during: string): void {
    this.#holds.report(this.#bench, during);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.client[Symbol.asyncDispose]();
  }
}

/** About how long one run may take. */
const maxMs = 1_500;
