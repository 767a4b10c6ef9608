import { once } from "node:events";
import nodeModule from "node:module";
import type { Logger } from "../logger.ts";
import { SettingsError } from "../settings.ts";
import { surviveDiscardedSockets } from "./discarded-sockets.ts";
import { IdleCollection } from "./idle-collection.ts";
import { tellSystemd } from "./systemd.ts";

/** A running service, as its main function runs it. */
export type Service = AsyncDisposable & {
  readonly addresses?: Readonly<Record<string, string>>;
  /** Rejects when the service can't continue and won't recover; the message is one sentence for people. */
  readonly failed?: Promise<never>;
  /** Calls `send` with what the parent should know, and again when it changes. */
  readonly reports?: (send: (report: ServiceReport) => void) => void;
};

/** Over the IPC channel: the log's disk is full, or is no longer. */
export type ServiceReport = { readonly type: "log-full"; readonly isFull: boolean };

/**
 * The life of a service's process: start, wait for SIGINT, SIGTERM or its failure, stop, exit code. A second signal ends
 * it at once. With an IPC channel it reports to its parent when it is ready or why it failed, then what changes, and stops when
 * the parent is gone.
 */
export async function runService(log: Logger, start: () => Promise<Service>): Promise<void> {
  surviveDiscardedSockets(
    (err) => log.warn({ err }, "a discarded socket failed"),
    (err) => {
      log.fatal({ err }, "an uncaught failure");
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
  const fail = (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof SettingsError) log.fatal(message);
    else log.fatal({ err: error }, message);
    if (process.connected) process.send?.({ type: "failed", message });
    process.exitCode = 1;
  };
  try {
    await using service = await start();
    service.failed?.catch((error: unknown) => {
      fail(error);
      shutdown.abort();
    });
    log.info({ ...service.addresses }, "ready");
    process.send?.({ type: "ready", addresses: service.addresses ?? {} });
    service.reports?.((report) => process.connected && process.send?.(report));
    // Node would store its compile cache only at exit, which a killed process never reaches.
    nodeModule.flushCompileCache?.();
    const supervised = tellSystemd();
    using _atRest = new IdleCollection();
    if (!shutdown.signal.aborted) await once(shutdown.signal, "abort");
    log.info("stopping");
    supervised.stopping();
  } catch (error) {
    fail(error);
  } finally {
    if (process.connected) process.disconnect();
  }
}
