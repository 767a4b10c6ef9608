import type { Kysely } from "kysely";
import type { Database } from "./database.ts";
import { openPipeline, type Pipeline } from "./pipeline.ts";
import { PlanStatistics } from "./plan-statistics.ts";
import type { Schema } from "./schema.ts";

/** What writes tables: one transaction at a time. */
export type Lane = Pick<Pipeline, "transaction"> & {
  readonly db: Kysely<Schema>;
  /** Takes note of new events in the tables. */
  readonly wrote: (events: number) => void;
};

/** More writers than this at once would only wait for each other's disk. */
const defaultMax = 4;

/**
 * A few connections that many writers share. Each is taken for one transaction, in the order of the requests: however much
 * one writer has to do, another waits for the transactions before it and no longer.
 */
export class Pipelines implements AsyncDisposable {
  readonly #database: Database;
  readonly #max: number;
  /** The one that was used longest ago first: its commit is the likeliest to be over. */
  readonly #idle: Pipeline[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #all = new Set<Pipeline>();
  readonly #statistics: PlanStatistics;
  #taken = 0;

  constructor(database: Database, max = defaultMax) {
    this.#database = database;
    this.#statistics = new PlanStatistics(database);
    this.#max = max;
  }

  /**
   * For one writer, who begins a transaction when the commit of the last one is sent. It gets the same connection again if
   * nobody else has taken that, so that its statements follow the commit without a wait.
   */
  lane(): Lane {
    let last: Pipeline | undefined;
    return {
      db: this.#database.db,
      wrote: (events) => this.#statistics.wrote(events),
      transaction: async (work) => {
        const pipeline = await this.#take(last);
        last = pipeline;
        try {
          return await pipeline.transaction(work);
        } finally {
          this.#giveBack(pipeline);
        }
      },
    };
  }

  async #take(preferred: Pipeline | undefined): Promise<Pipeline> {
    if (this.#taken === this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#taken += 1;
    try {
      return this.#idleOne(preferred) ?? (await this.#open());
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  #idleOne(preferred: Pipeline | undefined): Pipeline | undefined {
    for (const one of this.#idle.filter(({ isLost }) => isLost())) {
      this.#idle.splice(this.#idle.indexOf(one), 1);
      this.#all.delete(one);
    }
    const found = this.#idle.find((one) => one === preferred) ?? this.#idle[0];
    if (found !== undefined) this.#idle.splice(this.#idle.indexOf(found), 1);
    return found;
  }

  async #open(): Promise<Pipeline> {
    const pipeline = await openPipeline(this.#database);
    this.#all.add(pipeline);
    return pipeline;
  }

  #giveBack(pipeline: Pipeline): void {
    this.#idle.push(pipeline);
    this.#leave();
  }

  /** The next one in the line has the place at once. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken -= 1;
    else next();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#statistics, ...this.#all].map((one) => one[Symbol.asyncDispose]()));
  }
}
