import { backoff, delay } from "@tapedeck/shared/sync/delay";

type Server = { readonly port: number; readonly exited: Promise<unknown>; readonly stop: () => Promise<void> };

type KeepOptions<S> = {
  readonly name: string;
  readonly start: (port: number) => Promise<S>;
  readonly printLine: (line: string) => void;
};

/**
 * Starts a server, and restarts it on the same port whenever it exits, until it is disposed of. `printLine` gets one line for
 * people.
 */
export async function keep<S extends Server>(
  name: string,
  port: number,
  start: (port: number) => Promise<S>,
  printLine: (line: string) => void,
): Promise<Kept<S>> {
  return new Kept(await start(port), { name, start, printLine });
}

/** A server that runs, and is started again when it exits. */
export class Kept<S extends Server> implements AsyncDisposable {
  readonly #options: KeepOptions<S>;
  readonly #port: number;
  readonly #stopping = new AbortController();
  readonly #over: Promise<void>;
  #current: S;
  #isStopRequested = false;

  constructor(running: S, options: KeepOptions<S>) {
    this.#options = options;
    this.#port = running.port;
    this.#current = running;
    this.#over = this.#supervise();
  }

  current(): S {
    return this.#current;
  }

  /** Stops it; it is started again at once. */
  restart(): Promise<void> {
    this.#isStopRequested = true;
    return this.#current.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#current.stop();
    await this.#over;
    // It may have been on its way up again: a server that gets our signal, too, ends before we ask it to.
    await this.#current.stop();
  }

  async #supervise(): Promise<void> {
    const { name, printLine } = this.#options;
    const stopping = this.#stopping.signal;
    while (!stopping.aborted) {
      await this.#current.exited;
      if (stopping.aborted) return;
      if (!this.#isStopRequested) printLine(`${name} exited unexpectedly and is restarted`);
      this.#isStopRequested = false;
      await this.#startAgain(stopping);
    }
  }

  async #startAgain(stopping: AbortSignal): Promise<void> {
    const { name, start, printLine } = this.#options;
    const wait = backoff(100, 5_000);
    for (;;) {
      await delay(wait.next(), stopping);
      if (stopping.aborted) return;
      try {
        this.#current = await start(this.#port);
        return;
      } catch (error) {
        printLine(`${name}: ${error instanceof Error ? error.message : error}`);
      }
    }
  }
}
