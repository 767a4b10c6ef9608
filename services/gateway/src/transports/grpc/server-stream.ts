import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";

type Call = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

/**
 * Writes messages at the pace of the slower side: while the client does not read, the source is not asked for more.
 * Returns when the source ends or the call is gone; ending the call is the caller's job.
 */
export async function writeAll(call: Call, messages: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  for await (const message of messages) {
    if (signal.aborted) return;
    if (!call.write(asBuffer(message))) await drained(call, signal);
  }
}

/**
 * Aborts when the call is over, for whatever reason: grpc-js emits `cancelled` after a normal end too, so this says
 * "clean up", not "the client left".
 */
export function callSignal(call: { once(event: "cancelled", listener: () => void): unknown }): AbortSignal {
  const over = new AbortController();
  call.once("cancelled", () => over.abort());
  return over.signal;
}

function drained(call: Call, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      call.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    call.on("drain", done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
