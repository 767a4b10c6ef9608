import type { Socket } from "node:net";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import type { WebSocket } from "ws";
import { SendWindow } from "../send-window.ts";
import { textFrames } from "./frames.ts";

/** Messages on their way to one peer: bounded in bytes, and its subscriptions take turns. */
export type Outbox = {
  /**
   * Sends frames of a subscription; resolves when they are on their way, undefined: they are. Drops them when the signal aborts
   * before their turn.
   */
  put(frames: Buffer, signal: AbortSignal): Promise<void> | undefined;
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
  readonly max: number;
  /** Called whenever the peer has taken a message, with how long that message had waited. */
  readonly taken: (waitedMs: number) => void;
};

export function outbox({ socket, tcp, max, taken }: OutboxOptions): Outbox {
  const window = new SendWindow(max);
  const sending = new Semaphore(1);

  /** Below `ws`, which takes one message at a time. What it writes itself, pings and the close frame, are whole frames as well. */
  const send = (frames: Buffer) => {
    if (socket.readyState !== socket.OPEN) return;
    const over = window.add(frames.byteLength);
    const since = performance.now();
    tcp.write(frames, (error) => {
      over();
      if (!error) taken(performance.now() - since);
    });
  };

  const putInTurn = async (frames: Buffer, signal: AbortSignal): Promise<void> => {
    const release = await sending.acquire(signal);
    if (release === undefined) return;
    try {
      if (!window.hasRoom(frames.byteLength)) await window.room(frames.byteLength, signal);
      // A closing socket takes no more messages, and is closed in a moment.
      if (socket.readyState !== socket.OPEN) await aborted(signal);
      if (!signal.aborted) send(frames);
    } finally {
      release();
    }
  };

  return {
    get isFull() {
      return window.bytes > max;
    },
    answer: (text) => send(textFrames([text])),
    put(frames, signal) {
      const isFree = sending.running === 0 && window.hasRoom(frames.byteLength) && socket.readyState === socket.OPEN;
      if (!isFree) return putInTurn(frames, signal);
      if (!signal.aborted) send(frames);
      return undefined;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
