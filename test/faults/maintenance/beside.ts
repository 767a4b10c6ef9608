import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { expect } from "vitest";
import { linkTo, PushingTap } from "../../shards/pushing-tap.ts";
import type { Processes } from "../processes.ts";

const source = sourceName({ workspace: "default", developer: "alice", project: "beside", upstream: "skaffold" });

/** How long recording took, in ms from the tap to the log. */
export type Delays = { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number };

/** A source that says something ten times a second, whatever happens, and everybody who asks whether Tapedeck is ready. */
export class RecordingBeside implements AsyncDisposable {
  readonly #tap: PushingTap;
  readonly #log: LogReader;
  readonly #over = new AbortController();
  readonly #working: Promise<unknown>;
  /** What /readyz answered, other than 200. */
  readonly unready: string[] = [];

  private constructor(tap: PushingTap, log: LogReader, addresses: readonly string[]) {
    this.#tap = tap;
    this.#log = log;
    this.#working = Promise.all([this.#speak(), ...addresses.map((address) => this.#watch(address))]);
  }

  static async start({ grpc, http, services, log }: Processes): Promise<RecordingBeside> {
    const tap = await PushingTap.start({ link: linkTo(grpc, {}), project: "beside" });
    tap.say();
    await tap.recorded();
    return new RecordingBeside(tap, log, [
      http,
      services.ingest.addresses.health ?? "",
      services.query.addresses.health ?? "",
    ]);
  }

  /** The delays while something is done. */
  async during<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly delays: Delays }> {
    const begin = (await this.#log.bounds()).lastOffset;
    const result = await work();
    await this.#tap.recorded();
    return { result, delays: await this.#delaysAfter(begin) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#working;
    await this.#tap[Symbol.asyncDispose]();
  }

  async #speak(): Promise<void> {
    const { signal } = this.#over;
    const began = performance.now();
    for (let said = 1; !signal.aborted; said++) {
      this.#tap.say();
      await delay(Math.max(0, began + said * 100 - performance.now()), signal);
    }
  }

  async #watch(address: string): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const answer = await fetch(`http://${address}/readyz`).catch((error: Error) => error);
      if (!(answer instanceof Response) || answer.status !== 200) {
        this.unready.push(`${address}: ${answer instanceof Response ? await answer.text() : answer.message}`);
      }
      await delay(100, signal);
    }
  }

  async #delaysAfter(afterOffset: Offset): Promise<Delays> {
    const subjects = [sourceFilter(source)];
    const until = await this.#log.lastMatch(subjects);
    const delays: number[] = [];
    for await (const { event, recordedAt } of this.#log.history({ afterOffset, subjects }, until, this.#over.signal)) {
      const { seconds = 0n, nanos = 0 } = event.observed_at ?? {};
      delays.push(recordedAt.getTime() - (Number(seconds) * 1_000 + nanos / 1e6));
    }
    delays.sort((one, other) => one - other);
    const at = (part: number) => Math.round(delays[Math.min(delays.length - 1, Math.floor(delays.length * part))] ?? 0);
    return { count: delays.length, p50: at(0.5), p99: at(0.99), max: at(1) };
  }
}

/** The budget of all maintenance, on a machine that records at once when it has nothing else to do. */
const budgetMs = 200;

/**
 * Records beside some maintenance, and compares with the same time without it, before and after: a busy machine delays
 * both. Recording may be delayed by 200 ms at the 99th percentile, and all of Tapedeck stays ready.
 */
export async function delaysLittle(what: string, on: Processes, work: () => Promise<unknown>, calmMs = 30_000) {
  await using beside = await RecordingBeside.start(on);
  const calm = () => beside.during(() => delay(calmMs));
  const before = (await calm()).delays;
  beside.unready.length = 0;
  const began = performance.now();
  const { delays } = await beside.during(work);
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  const unready = [...beside.unready];
  const after = (await calm()).delays;
  console.info(
    `${what} (${seconds} s): recording delayed by ${text(delays)}; without it ${text(before)}, ${text(after)}`,
  );
  expect(unready).toEqual([]);
  expect(delays.count).toBeGreaterThan(0);
  expect(delays.p99).toBeLessThanOrEqual(Math.max(before.p99, after.p99) + budgetMs);
}

function text({ p50, p99, max }: Delays): string {
  return `${p50} ms (p99 ${p99}, at most ${max})`;
}
