import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { connectionItems, type EmitContent } from "../connection-items.ts";
import type { TapOptions } from "../tap.ts";
import { type DialledServer, dial, type PolledServer } from "./dial.ts";

export type DialLoopOptions = Pick<TapOptions, "address" | "emit" | "signal"> & {
  readonly server: PolledServer;
  readonly channels: readonly string[];
  /** The channel of the answer that identifies the server. */
  readonly infoChannel: string;
  /** For the answer that identifies the server. */
  readonly timeoutMs: number;
  readonly now: () => Timestamp;
  readonly delays: DialDelays;
  /** Records one connection. Resolves after the connection has ended and nothing more comes of it. */
  readonly record: (server: DialledServer, emit: EmitContent) => Promise<void>;
};

export type DialDelays = {
  /** Before the first connection, for servers that live for one command. */
  readonly fastRetry?: { readonly forMs: number; readonly delayMs: number };
  /** Between attempts to reach a server that is away. */
  readonly awayMs: { readonly first: number; readonly longest: number };
  /** After a connection that lived this long the first delay is the shortest again. */
  readonly steadyMs: number;
};

/** Another kind of server is likely to stay, so the attempts are further apart. */
const strangerMs = { first: 1_000, longest: 30_000 };

/** Dials a polled server again and again until the signal aborts, and records one connection after the other. */
export class DialLoop {
  readonly #options: DialLoopOptions;
  readonly #afterAway: ReturnType<typeof backoff>;
  readonly #afterStranger = backoff(strangerMs.first, strangerMs.longest);
  #fastRetryUntil: number;
  #isStranger = false;

  constructor(options: DialLoopOptions) {
    const { awayMs, fastRetry } = options.delays;
    this.#options = options;
    this.#afterAway = backoff(awayMs.first, awayMs.longest);
    this.#fastRetryUntil = fastRetry === undefined ? Number.NEGATIVE_INFINITY : performance.now() + fastRetry.forMs;
  }

  /** Never rejects because of the upstream. */
  async run(): Promise<void> {
    const { server, signal } = this.#options;
    while (!signal.aborted) {
      const dialled = await dial(server, this.#options);
      if (dialled.there === "stranger") {
        this.#refuse(dialled.reason);
      } else {
        this.#isStranger = false;
        this.#afterStranger.reset();
      }
      if (dialled.there === "server") await this.#recordOnce(dialled);
      await delay(this.#delayMs(), signal);
    }
  }

  #delayMs(): number {
    const { fastRetry } = this.#options.delays;
    if (this.#isStranger) return this.#afterStranger.next();
    if (fastRetry !== undefined && performance.now() < this.#fastRetryUntil) return fastRetry.delayMs;
    return this.#afterAway.next();
  }

  /** Records a stranger once, and not with every attempt. */
  #refuse(reason: string): void {
    if (this.#isStranger) return;
    this.#isStranger = true;
    const { address, server, emit, now } = this.#options;
    const items = connectionItems(emit, now);
    items.emit({ $case: "dialled", value: { address, channels: [] } });
    items.emit({ $case: "closed", value: { reason: `no ${server.name}: ${reason}`, process_ended: false } });
  }

  async #recordOnce(dialled: DialledServer): Promise<void> {
    const { address, channels, infoChannel, emit, now, delays, record } = this.#options;
    const { connection, identity, version, info } = dialled;
    const since = performance.now();
    const items = connectionItems(emit, now);
    items.emit({ $case: "dialled", value: { address, channels: [...channels] } });
    items.emit({ $case: "identified", value: { identity, version } });
    items.emit({ $case: "described", value: { channel: infoChannel, state: info } });
    await record(dialled, items.emit);
    const reason = await connection.over;
    connection.close();
    items.emit({ $case: "closed", value: { reason, process_ended: false } });
    this.#fastRetryUntil = Number.NEGATIVE_INFINITY;
    if (performance.now() - since >= delays.steadyMs) this.#afterAway.reset();
  }
}
