import { status } from "@grpc/grpc-js";
import { delay } from "@tapedeck/shared/sync/delay";
import type { PolledConnection } from "../polling/connection.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import type { Doubts } from "./list-doubts.ts";
import type { InventoryMethods } from "./methods.ts";

export type SingleItemsOptions = {
  readonly methods: InventoryMethods;
  readonly connection: Pick<PolledConnection, "signal" | "call">;
  readonly emit: EmitResult;
  readonly doubts: Doubts;
  readonly intervalMs: number;
  /** The share of one of the host's processors that inspecting may cost: 0.016 is 1.6 %. */
  readonly share: number;
};

/** An item answers at once, or not before its own start is over: then it is left alone, as each call keeps waiting inside the server. */
const inspectMs = 1_000;
/** Between two rounds, at least. */
const roundMs = 1_000;

/**
 * Inspects the items that may change, one by one, while no list comes: rkt's ListPods waits for a pod that is starting,
 * and InspectPod of another one answers (docs/upstreams/rkt.md).
 */
export class SingleItems {
  readonly #options: SingleItemsOptions;
  readonly #unanswered = new Set<string>();

  constructor(options: SingleItemsOptions) {
    this.#options = options;
  }

  /** A list was answered. */
  reset(): void {
    this.#unanswered.clear();
  }

  /** Inspects in rounds until `over` resolves, or the connection has ended. Never rejects. */
  async inspectUntil(over: Promise<unknown>): Promise<void> {
    const { connection, intervalMs, share } = this.#options;
    const stop = new AbortController();
    const stopped = over.finally(() => stop.abort()).catch(() => {});
    const signal = AbortSignal.any([stop.signal, connection.signal]);
    while (!signal.aborted) {
      const tookMs = await this.#round(signal);
      await delay(Math.max(roundMs, intervalMs, tookMs * (1 / share - 1)), signal);
    }
    if (!connection.signal.aborted) await stopped;
  }

  /** Resolves with how long the answers took, in ms. */
  async #round(signal: AbortSignal): Promise<number> {
    const { methods, connection, emit, doubts } = this.#options;
    let tookMs = 0;
    for (const id of doubts.changeable()) {
      if (signal.aborted) break;
      if (this.#unanswered.has(id)) continue;
      const requestedAt = performance.now();
      const { code, message, response } = await connection.call(methods.inspect, methods.inspectRequest(id), inspectMs);
      if (connection.signal.aborted) break;
      if (code === status.DEADLINE_EXCEEDED) this.#unanswered.add(id);
      else {
        tookMs += performance.now() - requestedAt;
        emit({ $case: "one", value: { id, bytes: response, code, message } });
      }
    }
    return tookMs;
  }
}
