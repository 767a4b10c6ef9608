import { spawn } from "node:child_process";
import { startInterval } from "../../sync/timers.ts";

/**
 * Reports this process's state to systemd, which has started it. Node has no datagram sockets, so systemd's own program
 * does it.
 */
export type Supervised = { readonly stopping: () => void };

/** Half of the time after which systemd takes us for dead, as it asks (sd_watchdog_enabled). */
const part = 0.5;

/**
 * Says that the service is ready, and from then on that its event loop turns, as often as WatchdogSec asks for. Does
 * nothing without NOTIFY_SOCKET. That a server which we need is away is no reason to start us again, so it does not
 * stop these messages: ingest in particular must live on.
 */
export function tellSystemd(env: Readonly<Record<string, string | undefined>> = process.env): Supervised {
  if (!env.NOTIFY_SOCKET) return { stopping: () => {} };
  const notify = (...words: readonly string[]) => {
    const notifier = spawn("systemd-notify", [...words], { stdio: "ignore" });
    notifier.on("error", () => {}); // Type=notify then ends the start with a time-out, and the journal has the reason
    notifier.unref();
  };
  notify("--ready", "--status=ready");
  const everyMs = (Number(env.WATCHDOG_USEC ?? 0) / 1_000) * part;
  // Goes on while the service stops.
  if (everyMs > 0) startInterval(() => notify("WATCHDOG=1"), everyMs).unref();
  return { stopping: () => notify("STOPPING=1", "--status=stopping") };
}
