import compress from "@fastify/compress";
import type { FastifyInstance } from "fastify";

/** Answers below `threshold` gain nothing; answers above `sync` are compressed in other threads. */
const sizes = { threshold: 1_024, sync: 16 * 1_024 } as const;

/**
 * Compresses the answers of routes that are added after this, for clients that accept it. Streams are not compressed:
 * `writeStream` bypasses this, so that every message is on its way at once.
 */
export async function compressAnswers(app: FastifyInstance): Promise<void> {
  await app.register(compress, {
    encodings: ["br", "gzip", "deflate"],
    threshold: sizes.threshold,
    syncThreshold: sizes.sync,
    // A few bytes of a request could decompress to more than the memory holds.
    globalDecompression: false,
  });
}
