import type { OutgoingHttpHeaders } from "node:http";
import { startInterval, startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type { FastifyReply } from "fastify";
import { revocationOf } from "../../call-context.ts";
import { SendWindow } from "../send-window.ts";

export type StreamedAnswer = {
  readonly headers: OutgoingHttpHeaders;
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Makes the last chunk of a stream that fails after its headers are out. */
  readonly lastWords: (error: unknown) => string | Uint8Array;
  readonly sent: (bytes: number) => void;
  /** Bytes that may wait for the client to read them. 0: one chunk at a time. */
  readonly unreadBytes: number;
  /** What to write after a silence of `ms`, so that no proxy takes the stream for dead. */
  readonly idle?: { readonly ms?: number | undefined; readonly text: () => string };
};

/** The longest silence of a stream. Proxies take a connection for dead after 30 to 60 s. */
const defaultIdleMs = 15_000;

/** nginx holds an answer back until its buffers are full, headers included, unless the answer forbids it. */
const unbuffered = { "x-accel-buffering": "no" } as const;

/** How long a client whose token has ended may take to read what it was sent before. */
const farewellMs = 2_000;

/**
 * Answers with chunks at the pace of the slower side: sends headers at once, and requests no further chunk from the
 * source while the client does not read. `signal` aborts when the client has left, or when its token has ended, which the
 * last chunk then reports.
 */
export async function writeStream(
  reply: FastifyReply,
  signal: AbortSignal,
  { headers, chunks, lastWords, sent, unreadBytes, idle }: StreamedAnswer,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...unbuffered, ...headers });
  raw.flushHeaders();
  const window = new SendWindow(unreadBytes);
  const timer = idle && startInterval(() => window.bytes === 0 && raw.write(idle.text()), idle.ms ?? defaultIdleMs);
  try {
    for await (const chunk of chunks) {
      const bytes = Buffer.byteLength(chunk);
      if (!window.hasRoom(bytes)) await window.room(bytes, signal);
      if (signal.aborted) break;
      raw.write(chunk, window.add(bytes));
      timer?.refresh();
      sent(bytes);
    }
    if (!signal.aborted) raw.end();
  } catch (error) {
    if (!signal.aborted) raw.end(lastWords(error));
  } finally {
    stopTimer(timer);
  }
  const revocation = revocationOf(signal);
  if (revocation === undefined) return;
  raw.end(lastWords(revocation));
  const late = startTimer(() => raw.destroy(), farewellMs);
  raw.once("close", () => stopTimer(late));
}
