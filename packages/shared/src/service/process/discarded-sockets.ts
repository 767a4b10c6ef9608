/** Error codes of a write to a socket after its end. */
const codes: ReadonlySet<unknown> = new Set([
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_STREAM_DESTROYED",
  "EPIPE",
  "ECONNRESET",
]);

/**
 * Keeps the process alive when a discarded socket fails. The NATS client (3.4.0) removes its listeners from a socket
 * that it discards, and may still write to it in the same turn. The error is harmless and the client reconnects, but
 * Node would end the process. Every other uncaught error ends it as before.
 */
export function surviveDiscardedSockets(report: (error: Error) => void, fatal: (error: unknown) => void): void {
  process.on("uncaughtException", (error) => {
    if ("code" in error && codes.has(error.code)) {
      report(error);
      return;
    }
    fatal(error);
  });
}
