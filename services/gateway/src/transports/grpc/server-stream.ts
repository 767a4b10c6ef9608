import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { callOver } from "@tapedeck/shared/sync/call-over";
import type { EncodedMessages } from "../../apis/encoded-answer.ts";
import { enoughAtOnce, SendWindow } from "../send-window.ts";
import { FramedMessages } from "./message-groups.ts";

/** How a stream is written. */
export type WriteOptions = {
  /** Bytes that may wait for the client to read them. */
  readonly unreadBytes: number;
  /** Counts the bytes of messages. */
  readonly sent: (bytes: number) => void;
};

type Answer = Buffer | FramedMessages;
export type StreamCall = ServerWritableStream<Buffer, Answer> | ServerDuplexStream<Buffer, Answer>;

/**
 * Writes messages at the pace of the slower side: while the client does not read, the source is not asked for more.
 * Returns when the source ends or the call is gone; ending the call is the caller's job.
 */
export async function writeAll(
  call: StreamCall,
  messages: EncodedMessages,
  signal: AbortSignal,
  { unreadBytes, sent }: WriteOptions,
): Promise<void> {
  const window = new SendWindow(unreadBytes);
  const maxTogether = Math.min(enoughAtOnce, unreadBytes);
  for await (const some of messages) {
    for (const together of counted(some instanceof Uint8Array ? [some] : some, maxTogether)) {
      const bytes = together.reduce((sum, { byteLength }) => sum + byteLength, 0);
      if (!window.hasRoom(bytes)) await window.room(bytes, signal);
      if (signal.aborted) return;
      const taken = window.add(bytes);
      // The result of `write` is no help: grpc-js counts messages there, whatever their size.
      const [only] = together;
      call.write(only !== undefined && together.length === 1 ? asBuffer(only) : new FramedMessages(together), taken);
      sent(bytes);
    }
  }
}

/** Cuts messages into those that the client's window counts together: at most so many bytes, or a single message. */
function* counted(messages: readonly Uint8Array[], max: number): Generator<readonly Uint8Array[], void> {
  let first = 0;
  let bytes = 0;
  for (const [index, { byteLength }] of messages.entries()) {
    if (index > first && bytes + byteLength > max) {
      yield messages.slice(first, index);
      first = index;
      bytes = 0;
    }
    bytes += byteLength;
  }
  if (first < messages.length) yield messages.slice(first);
}

/**
 * Aborts when the call is over, for whatever reason: grpc-js emits `cancelled` after a normal end too, so this means
 * "clean up", not "the client left".
 */
export function callSignal(call: {
  readonly cancelled: boolean;
  once(event: "cancelled", listener: () => void): unknown;
}): AbortSignal {
  const over = new AbortController();
  call.once("cancelled", () => over.abort(callOver));
  if (call.cancelled) over.abort(callOver);
  return over.signal;
}
