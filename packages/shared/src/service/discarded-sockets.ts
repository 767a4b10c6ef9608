/** Error codes of a write to a socket after its end. */
const codes: ReadonlySet<unknown> = new Set([
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_STREAM_DESTROYED",
  "EPIPE",
  "ECONNRESET",
]);

/**
 * Keeps the process alive when a socket fails that nobody listens to any more. The NATS client (3.4.0) takes its
 * listeners from a socket that it discards, and may still write to it in the same turn; the error concerns nobody, the
 * client connects again, but Node would end the process. Every other uncaught error ends it as before.
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
