import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import { SendWindow } from "../send-window.ts";

/** How a stream is written. */
export type WriteOptions = {
  /** Bytes that may wait for the client to read them. */
  readonly unreadBytes: number;
  /** Counts every message. */
  readonly sent: (bytes: number) => void;
};

export type StreamCall = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

/**
 * Writes messages at the pace of the slower side: while the client does not read, the source is not asked for more.
 * Returns when the source ends or the call is gone; ending the call is the caller's job.
 */
export async function writeAll(
  call: StreamCall,
  messages: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { unreadBytes, sent }: WriteOptions,
): Promise<void> {
  const window = new SendWindow(unreadBytes);
  for await (const message of messages) {
    await window.room(message.byteLength, signal);
    if (signal.aborted) return;
    // The result of `write` is no help: grpc-js counts messages there, whatever their size.
    call.write(asBuffer(message), window.add(message.byteLength));
    sent(message.byteLength);
  }
}

/**
 * Aborts when the call is over, for whatever reason: grpc-js emits `cancelled` after a normal end too, so this says
 * "clean up", not "the client left".
 */
export function callSignal(call: {
  readonly cancelled: boolean;
  once(event: "cancelled", listener: () => void): unknown;
}): AbortSignal {
  const over = new AbortController();
  call.once("cancelled", () => over.abort());
  if (call.cancelled) over.abort();
  return over.signal;
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
