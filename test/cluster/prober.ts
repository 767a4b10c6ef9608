import { delay } from "@tapedeck/shared/sync/delay";

/** The pause between two requests. */
const pauseMs = 100;
/** A client's timeout before it retries. */
const timeoutMs = 2_000;

/** Repeats the same request, as a client that retries would, and records when it got answers. */
export class Prober implements AsyncDisposable {
  readonly name: string;
  readonly #answered: number[] = [];
  readonly #over = new AbortController();
  readonly #running: Promise<void>;
  failures = 0;

  constructor(name: string, url: string) {
    this.name = name;
    this.#running = this.#run(url);
  }

  /** The longest time in ms between two answers, in a span of time. */
  longestWait(from: number, to: number): number {
    const inside = this.#answered.filter((at) => at > from && at < to);
    const times = [from, ...inside, to];
    return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(url: string): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        const answer = await fetch(url, {
          // Each request may reach another gateway.
          headers: { connection: "close" },
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        });
        await answer.arrayBuffer();
        if (answer.ok) this.#answered.push(Date.now());
        else this.failures++;
      } catch {
        this.failures++;
      }
      await delay(pauseMs, signal);
    }
  }
}
