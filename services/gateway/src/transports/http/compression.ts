import compress from "@fastify/compress";
import type { FastifyInstance } from "fastify";

/** What is smaller is as small uncompressed; what is larger than `sync` is compressed in other threads. */
const sizes = { threshold: 1_024, sync: 16 * 1_024 } as const;

/**
 * Compresses the answers of routes that are made after this, where the client takes it. Not streams: `writeStream` answers
 * without it, so that every message is on its way at once.
 */
export async function compressAnswers(app: FastifyInstance): Promise<void> {
  await app.register(compress, {
    encodings: ["br", "gzip", "deflate"],
    threshold: sizes.threshold,
    syncThreshold: sizes.sync,
    // A few bytes of a request could become more than may be held.
    globalDecompression: false,
  });
}
