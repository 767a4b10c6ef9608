import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { open, readFile, rename, stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { run } from "./run.ts";
import { watchOver } from "./watchdog.ts";

/** How a process ended: with a code, or by a signal. */
export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** The process of a server that was started. */
export type ServerProcess = {
  readonly pid: number;
  /** Resolves when the process is gone, whatever ended it. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Sends the stop signal, and SIGKILL after ten seconds. */
  stop(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<Exit>;
};

/** The program of a server, and its arguments. */
export type ServerCommand = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /**
   * Output goes to a file and not through a pipe, so that the server can still shut down cleanly when its parent is
   * gone.
   */
  readonly logFile: string;
  readonly stopSignal: NodeJS.Signals;
  /** The part of its command line that identifies it. */
  readonly mark: string;
};

const stopTimeoutMs = 10_000;
const logLimitBytes = 10 * 1024 * 1024;

/**
 * Starts a server in its own process group: a Ctrl-C in the terminal reaches only this process, which decides when it
 * stops. If this process exits without stopping it, the server is stopped on the way out; if this process is killed, by
 * a watchdog.
 */
export async function spawnServer(server: ServerCommand): Promise<ServerProcess> {
  await rotate(server.logFile);
  const log = await open(server.logFile, "a", 0o600);
  const child = spawn(server.command, server.args, {
    stdio: ["ignore", log.fd, log.fd],
    detached: true,
    env: { ...process.env, ...server.env },
    ...server.user,
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", () => resolve({ code: null, signal: null }));
  });
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
  } finally {
    await log.close();
  }
  const pid = child.pid as number;
  stopOnExit(child, server.stopSignal);
  const watchdog = watchOver({ pid, ...server });
  void exited.then(() => watchdog.kill("SIGKILL"));

  const kill = (signal: NodeJS.Signals = "SIGKILL") => {
    child.kill(signal);
    return exited;
  };
  const stop = async () => {
    const gaveUp = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
    await kill(server.stopSignal);
    clearTimeout(gaveUp);
  };
  return { pid, exited, stop, kill };
}

/** Polls `ready` until it returns a value. Returns `undefined` if the process ended before. */
export async function untilReady<T>(
  { exited }: ServerProcess,
  ready: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let alive = true;
  void exited.then(() => {
    alive = false;
  });
  while (alive) {
    const found = await ready();
    if (found !== undefined) return found;
    await delay(20);
  }
  return undefined;
}

/** The command line of a running process; undefined if there is none with that id. Slim Linux images have no `ps`. */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  if (commandLine !== "") return commandLine.replaceAll("\0", " ").trim();
  const { code, stdout } = await run("ps", ["-ww", "-p", String(pid), "-o", "args="]);
  return code === 0 ? stdout.trim() : undefined;
}

/** Stops a process that is not our child, and waits until it is gone. */
export async function stopForeign(pid: number, signal: NodeJS.Signals): Promise<void> {
  const started = Date.now();
  let next: NodeJS.Signals | 0 = signal;
  for (;;) {
    try {
      process.kill(pid, next);
    } catch {
      return;
    }
    await delay(20);
    next = Date.now() - started > stopTimeoutMs ? "SIGKILL" : 0;
  }
}

/** The server's log since `from` (a byte offset). */
export async function logSince(logFile: string, from: number): Promise<string> {
  if (!existsSync(logFile)) return "";
  return (await readFile(logFile)).subarray(from).toString();
}

/** The size of a log file in bytes; 0 if there is none. */
export async function logSize(logFile: string): Promise<number> {
  return existsSync(logFile) ? (await stat(logFile)).size : 0;
}

const running = new Map<ChildProcess, NodeJS.Signals>();

function stopOnExit(child: ChildProcess, signal: NodeJS.Signals): void {
  if (running.size === 0) process.once("exit", stopAll);
  running.set(child, signal);
  child.once("exit", () => {
    running.delete(child);
    if (running.size === 0) process.off("exit", stopAll);
  });
}

function stopAll(): void {
  for (const [child, signal] of running) child.kill(signal);
}

async function rotate(logFile: string): Promise<void> {
  if ((await logSize(logFile)) > logLimitBytes) await rename(logFile, `${logFile}.old`);
}
