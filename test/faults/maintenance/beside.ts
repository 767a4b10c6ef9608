import { delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import { expect } from "vitest";
import { linkTo, PushingTap } from "../../harness/pushing-tap.ts";
import type { Processes } from "../processes.ts";

/** How long recording took, in ms from the tap to the acknowledgement by the recorder. */
type Delays = { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number };

/** Where is recorded and who must stay ready: "host:port" each. */
export type Beside = {
  readonly grpc: string;
  readonly token?: string;
  readonly ready: readonly string[];
};

/** All who take part in recording say whether they are ready. */
export function besideOf({ grpc, http, services: { ingest, query } }: Processes): Beside {
  return { grpc, ready: [http, ingest.addresses.health ?? "", query.addresses.health ?? ""] };
}

const everyMs = 100;

/** A source that says something ten times a second, whatever happens, and everybody who asks whether Tapedeck is ready. */
class RecordingBeside implements AsyncDisposable {
  readonly #tap: PushingTap;
  readonly #over = new AbortController();
  readonly #working: Promise<unknown>;
  #delays: number[] = [];
  #unready: string[] = [];

  private constructor(tap: PushingTap, ready: readonly string[]) {
    this.#tap = tap;
    this.#working = Promise.all([this.#speak(), ...ready.map((address) => this.#watch(address))]);
  }

  static async start({ grpc, token, ready }: Beside): Promise<RecordingBeside> {
    const metadata = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // A source that was recorded before would take a while until it is known whether the new tap repeats what it said.
    const project = `beside-${ulid().toLowerCase()}`;
    const tap = await PushingTap.start({ link: linkTo(grpc, metadata), project });
    await tap.pushRecorded();
    return new RecordingBeside(tap, ready);
  }

  /** What was said while something was done, and what /readyz answered other than 200. */
  async during(work: () => Promise<unknown>) {
    await this.#tap.recorded();
    this.#delays = [];
    this.#unready = [];
    await work();
    await this.#tap.recorded();
    const result = { delays: this.#delays, unready: this.#unready };
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#tap[Symbol.asyncDispose]();
    await this.#working;
  }

  async #speak(): Promise<void> {
    const { signal } = this.#over;
    const began = performance.now();
    for (let said = 1; !signal.aborted; said++) {
      const saidAt = performance.now();
      void this.#tap.pushRecorded().then(() => this.#delays.push(performance.now() - saidAt));
      await delay(Math.max(0, began + said * everyMs - performance.now()), signal);
    }
  }

  async #watch(address: string): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const answer = await fetch(`http://${address}/readyz`).catch((error: Error) => error);
      if (!(answer instanceof Response) || answer.status !== 200) {
        this.#unready.push(`${address}: ${answer instanceof Response ? await answer.text() : answer.message}`);
      } else {
        await answer.arrayBuffer();
      }
      await delay(everyMs, signal);
    }
  }
}

/** What maintenance may add to the delay of recording, at the 99th percentile. */
const budgetMs = 200;
/** How long each phase takes at least, with and without maintenance. */
const phaseMs = 8_000;

/** Repeats some maintenance until a phase is long enough, or there is no more of it to do. */
export async function untilLong(work: () => Promise<"more" | "over">): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < phaseMs) if ((await work()) === "over") return;
}

export type Maintenance = {
  readonly what: string;
  readonly rounds?: number;
  /** What a round needs, and is not measured. */
  readonly prepare?: () => Promise<unknown>;
  readonly round: () => Promise<unknown>;
};

/**
 * Records in phases without and with maintenance, by turns, and compares each round with the quiet phases around it: what
 * else the machine does delays both. The median of what the rounds added to the 99th percentile must be within the budget,
 * and Tapedeck must be ready throughout. What quiet phases differ by among themselves is the machine's, and is allowed too,
 * up to as much as the budget: on a machine with more noise nothing can be said.
 */
export async function delaysLittle(
  beside: Beside,
  { what, rounds = 3, prepare = async () => {}, round }: Maintenance,
): Promise<void> {
  await using recording = await RecordingBeside.start(beside);
  const quiet = async () => (await recording.during(() => delay(phaseMs))).delays;
  const added: number[] = [];
  await prepare();
  let before = await quiet();
  const calmP99s = [summary(before).p99];
  for (let index = 0; index < rounds; index++) {
    if (index > 0) await prepare();
    const began = performance.now();
    const { delays, unready } = await recording.during(round);
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    const after = await quiet();
    const [busy, calm] = [summary(delays), summary([...before, ...after])];
    console.info(`${what}, ${seconds} s: ${text(busy)}; without it: ${text(calm)}`);
    expect(unready).toEqual([]);
    expect(busy.count).toBeGreaterThan(20);
    added.push(busy.p99 - calm.p99);
    calmP99s.push(summary(after).p99);
    before = after;
  }
  added.sort((one, other) => one - other);
  const median = added[Math.floor(added.length / 2)] ?? 0;
  const noise = Math.max(...calmP99s) - Math.min(...calmP99s);
  console.info(
    `${what} adds ${median} ms to the 99th percentile (${added.join(", ")}); the machine's noise: ${noise} ms`,
  );
  expect(median, noise > budgetMs ? "the machine is too noisy to tell" : undefined).toBeLessThanOrEqual(
    budgetMs + Math.min(noise, budgetMs),
  );
}

function summary(all: readonly number[]): Delays {
  const delays = all.toSorted((one, other) => one - other);
  const at = (part: number) => Math.round(delays[Math.min(delays.length - 1, Math.floor(delays.length * part))] ?? 0);
  return { count: delays.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

function text({ count, p50, p99, max }: Delays): string {
  return `${p50} ms (p99 ${p99}, at most ${max}, of ${count})`;
}
