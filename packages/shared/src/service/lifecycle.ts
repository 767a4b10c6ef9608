import { once } from "node:events";
import { surviveDiscardedSockets } from "./discarded-sockets.ts";
import type { Logger } from "./logger.ts";
import { SettingsError } from "./settings.ts";

/**
 * The life of a service's process: start, wait for SIGINT or SIGTERM, stop, exit code. A second signal ends it at once.
 * With an IPC channel it tells its parent when it is ready or why it failed, and stops when the parent is gone.
 */
export async function runService(
  log: Logger,
  start: () => Promise<AsyncDisposable & { readonly addresses?: Readonly<Record<string, string>> }>,
): Promise<void> {
  surviveDiscardedSockets(
    (err) => log.warn({ err }, "a socket failed that nobody uses any more"),
    (err) => {
      log.fatal({ err }, "a failure that nobody caught");
      process.exit(1);
    },
  );
  const shutdown = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (shutdown.signal.aborted) process.exit(130);
      shutdown.abort();
    });
  }
  process.on("disconnect", () => shutdown.abort());
  try {
    await using service = await start();
    log.info({ ...service.addresses }, "ready");
    process.send?.({ type: "ready", addresses: service.addresses ?? {} });
    if (!shutdown.signal.aborted) await once(shutdown.signal, "abort");
    log.info("stopping");
  } catch (error) {
    if (error instanceof SettingsError) log.fatal(error.message);
    else log.fatal({ err: error }, error instanceof Error ? error.message : "failed");
    process.send?.({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
  } finally {
    if (process.connected) process.disconnect();
  }
}
