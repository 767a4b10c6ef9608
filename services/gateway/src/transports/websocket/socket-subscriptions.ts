import { allOf } from "../../apis/tapedeck/messages.ts";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { CallContext, Caller } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { enoughAtOnce } from "../send-window.ts";
import { framesOf } from "./frames.ts";
import type { Outbox } from "./outbox.ts";
import type { Subscribe } from "./protocol.ts";

export type SocketSubscriptionsOptions = {
  readonly api: Pick<TapedeckApi, "subscribe">;
  readonly caller: Caller;
  readonly outbox: Outbox;
  readonly watch: Pick<CallWatch, "sent">;
  /** Bytes that may wait for the peer to read them. */
  readonly unreadBytes: number;
  /** Reports the error that ended a subscription. */
  readonly failed: (error: unknown, id: string) => void;
};

/** The subscriptions of one socket, by the ids that the client gave them. */
export class SocketSubscriptions {
  readonly #options: SocketSubscriptionsOptions;
  readonly #running = new Map<string, AbortController>();

  constructor(options: SocketSubscriptionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#running.size;
  }

  has(id: string): boolean {
    return this.#running.has(id);
  }

  begin(request: Subscribe): void {
    const { id } = request;
    const over = new AbortController();
    this.#running.set(id, over);
    const { signal } = over;
    this.#send(request, { ...this.#options.caller, signal })
      .catch((error: unknown) => {
        if (!signal.aborted) this.#options.failed(error, id);
      })
      .finally(() => {
        if (this.#running.get(id) === over) this.#running.delete(id);
      });
  }

  end(id: string): void {
    this.#running.get(id)?.abort();
    this.#running.delete(id);
  }

  endAll(): void {
    for (const subscription of this.#running.values()) subscription.abort();
  }

  async #send({ type: _, id, after, ...subscription }: Subscribe, context: CallContext): Promise<void> {
    const { api, outbox, watch } = this.#options;
    const request = Object.fromEntries(
      Object.entries({ ...subscription, after }).filter(([, value]) => value !== undefined),
    );
    const { messages } = await api.subscribe(request, context);
    const max = Math.min(enoughAtOnce, this.#options.unreadBytes);
    const label = `,"id":${JSON.stringify(id)},`;
    for await (const some of messages) {
      for (const frames of framesOf(allOf(some), label, max)) {
        const sent = outbox.put(frames, context.signal);
        if (sent !== undefined) await sent;
        if (context.signal.aborted) return;
        watch.sent(frames.byteLength);
      }
    }
  }
}
