import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";

/**
 * Answers with chunks at the pace of the slower side: headers at once, then while the client does not read, the source
 * is not asked for more. `onError` makes the last chunk of a stream that fails after its headers are out.
 */
export async function writeStream(
  reply: FastifyReply,
  headers: OutgoingHttpHeaders,
  chunks: AsyncIterable<string | Uint8Array>,
  onError: (error: unknown) => string,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...headers });
  raw.flushHeaders();
  try {
    for await (const chunk of chunks) {
      if (raw.destroyed) return;
      if (!raw.write(chunk)) await drained(raw);
    }
    raw.end();
  } catch (error) {
    if (!raw.destroyed) raw.end(onError(error));
  }
}

function drained(raw: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      raw.off("drain", done);
      raw.off("close", done);
      resolve();
    };
    raw.on("drain", done);
    raw.on("close", done);
    if (raw.destroyed) done();
  });
}
