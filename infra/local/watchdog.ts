import { type ChildProcess, spawn } from "node:child_process";

export type Watched = {
  readonly pid: number;
  /** How the server is asked to end. */
  readonly stopSignal: NodeJS.Signals;
  /** Part of its command line: the number may belong to another program by the time that it is signalled. */
  readonly mark: string;
};

/**
 * Its input ends when we do, whatever ended us. `read` gives up then, and nothing is ever written. Slim images of Linux
 * have no `ps`, other systems no /proc.
 */
const script = `read -r nothing
if [ -r "/proc/$1/cmdline" ]; then command="$(tr '\\0' ' ' < "/proc/$1/cmdline")"
else command="$(ps -ww -p "$1" -o args=)"; fi
case "$command" in *"$2"*) kill -s "$3" "$1" ;; esac`;

/**
 * Asks a server to end when this process is gone without having done so (SIGKILL, a crash), as this process would have
 * asked. A small process in a session of its own, so that a Ctrl-C in the terminal does not reach it. To be killed when
 * the server has ended.
 */
export function watchOver({ pid, stopSignal, mark }: Watched): ChildProcess {
  const args = ["-c", script, "tapedeck-watchdog", String(pid), mark, stopSignal.replace(/^SIG/, "")];
  const watchdog = spawn("/bin/sh", args, { stdio: ["pipe", "ignore", "ignore"], detached: true });
  // Without one the server is only left running, and the next start stops it.
  watchdog.on("error", () => {});
  watchdog.stdin?.on("error", () => {});
  watchdog.unref();
  const input = watchdog.stdin;
  if (input !== null && "unref" in input && typeof input.unref === "function") input.unref();
  return watchdog;
}
