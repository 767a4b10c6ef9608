import type { Socket } from "node:net";
import { turns } from "@tapedeck/shared/sync/semaphore";
import type { WebSocket } from "ws";
import { unread } from "../send-window.ts";

/** The way to one peer: bounded in bytes, and its subscriptions take turns. */
export type Outbox = {
  /** A message of a subscription: resolves when it is on its way. Not sent when the signal aborts before its turn. */
  put(text: string, signal: AbortSignal): Promise<void>;
  /** A short answer, at once. */
  answer(text: string): void;
  /** More waits than should: who goes on asking without reading is to be read no more. */
  readonly isFull: boolean;
};

export type OutboxOptions = {
  readonly socket: WebSocket;
  /** The connection below it. */
  readonly tcp: Socket;
  /** Bytes that may wait unread; one message always fits. */
  readonly most: number;
  /** Told whenever the peer has taken something, and how long that had waited. */
  readonly taken: (waitedMs: number) => void;
};

export function outbox({ socket, tcp, most, taken }: OutboxOptions): Outbox {
  const queue = unread(most);
  const line = turns(1);
  let isCorked = false;

  /** What is sent in one turn of the event loop goes out in one write, which costs less than half. */
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
    const over = queue.give(message.byteLength);
    const since = performance.now();
    socket.send(message, { binary: false }, (error) => {
      over();
      if (!error) taken(performance.now() - since);
    });
  };

  return {
    get isFull() {
      return queue.bytes > most;
    },
    answer: (text) => send(Buffer.from(text)),
    async put(text, signal) {
      const endTurn = await line.take(signal);
      if (endTurn === undefined) return;
      try {
        const message = Buffer.from(text);
        await queue.room(message.byteLength, signal);
        // What closes takes nothing any more, and is over in a moment.
        if (socket.readyState !== socket.OPEN) await aborted(signal);
        if (!signal.aborted) send(message);
      } finally {
        endTurn();
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
