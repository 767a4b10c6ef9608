import type { Socket } from "node:net";
import { semaphore } from "@tapedeck/shared/sync/semaphore";
import type { WebSocket } from "ws";
import { SendWindow } from "../send-window.ts";

/** Messages on their way to one peer: bounded in bytes, and its subscriptions take turns. */
export type Outbox = {
  /** Sends a message of a subscription; resolves when it is on its way. Drops it when the signal aborts before its turn. */
  put(text: string, signal: AbortSignal): Promise<void>;
  /** Sends a short answer at once. */
  answer(text: string): void;
  /** More waits than allowed: a client that keeps sending without reading must not be read any more. */
  readonly isFull: boolean;
};

export type OutboxOptions = {
  readonly socket: WebSocket;
  /** The connection below it. */
  readonly tcp: Socket;
  /** Bytes that may wait for the peer to read them; one message always fits. */
  readonly most: number;
  /** Called whenever the peer has taken a message, with how long that message had waited. */
  readonly taken: (waitedMs: number) => void;
};

export function outbox({ socket, tcp, most, taken }: OutboxOptions): Outbox {
  const window = new SendWindow(most);
  const sending = semaphore(1);
  let isCorked = false;

  /** Messages of one turn of the event loop go out in one write, which costs less than half. */
  const gather = () => {
    if (isCorked) return;
    isCorked = true;
    tcp.cork();
    setImmediate(() => {
      isCorked = false;
      tcp.uncork();
    });
  };
  const send = (message: Buffer) => {
    if (socket.readyState !== socket.OPEN) return;
    gather();
    const over = window.add(message.byteLength);
    const since = performance.now();
    socket.send(message, { binary: false }, (error) => {
      over();
      if (!error) taken(performance.now() - since);
    });
  };

  return {
    get isFull() {
      return window.bytes > most;
    },
    answer: (text) => send(Buffer.from(text)),
    async put(text, signal) {
      const release = await sending.acquire(signal);
      if (release === undefined) return;
      try {
        const message = Buffer.from(text);
        await window.room(message.byteLength, signal);
        // A closing socket takes no more messages, and is closed in a moment.
        if (socket.readyState !== socket.OPEN) await aborted(signal);
        if (!signal.aborted) send(message);
      } finally {
        release();
      }
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
