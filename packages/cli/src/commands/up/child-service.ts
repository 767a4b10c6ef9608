import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { CommandError } from "../../command-error.ts";
import { compileCache } from "../../compile-cache.ts";

export type ServiceSpec = {
  readonly name: string;
  /** Path of its main.ts. */
  readonly main: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** How long it may take to stop before it is killed. */
  readonly stopMs: number;
  /** Called when it exited unexpectedly and is restarted. */
  readonly onDeath?: (how: string) => void;
};

export type ChildService = AsyncDisposable & {
  readonly name: string;
  /** The addresses from the last time it was ready. */
  readonly addresses: () => Readonly<Record<string, string>>;
  readonly pid: () => number | undefined;
  /** A message over its IPC channel; lost while it is down. */
  readonly send: (message: string) => void;
  /** Asks it to stop and waits until it is gone. It is not started again. */
  readonly stop: () => Promise<void>;
};

type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** A child that has lived this long is started again at once; one that dies sooner waits longer each time. */
const steadyMs = 10_000;

/**
 * Starts a service in its own process, from its sources, and restarts it whenever it dies, until it is stopped.
 * Resolves when it is ready for the first time.
 * @throws CommandError with its output if it fails before
 */
export async function startChildService(spec: ServiceSpec): Promise<ChildService> {
  let addresses: Readonly<Record<string, string>> = {};
  const stopping = new AbortController();
  const first = Promise.withResolvers<void>();
  let current = launch();

  function launch() {
    const running = spawnService(spec, {
      ready: (at) => {
        addresses = at;
        first.resolve();
      },
      failed: (message) => first.reject(new CommandError(message)),
    });
    return running;
  }

  async function supervise(): Promise<void> {
    const wait = backoff(200, 10_000);
    for (;;) {
      const started = performance.now();
      const exit = await current.exited;
      if (stopping.signal.aborted) return;
      if (performance.now() - started > steadyMs) wait.reset();
      spec.onDeath?.(exit.signal === null ? `ended with code ${exit.code}` : `was killed (${exit.signal})`);
      await delay(wait.next(), stopping.signal);
      if (stopping.signal.aborted) return;
      current = launch();
    }
  }

  const died = current.exited.then(({ code, signal }) => {
    throw new CommandError(`${spec.name} did not start (${signal ?? `exit code ${code}`}): see ${spec.logFile}.`);
  });
  await Promise.race([first.promise, died]);
  died.catch(() => {});
  const over = supervise();

  const stop = async () => {
    stopping.abort();
    const { child } = current;
    child.kill("SIGTERM");
    const gaveUp = setTimeout(() => child.kill("SIGKILL"), spec.stopMs);
    await over;
    clearTimeout(gaveUp);
  };
  return {
    name: spec.name,
    addresses: () => addresses,
    pid: () => current.child.pid,
    send: (message) => {
      if (current.child.connected) current.child.send(message);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

type Reports = {
  readonly ready: (addresses: Readonly<Record<string, string>>) => void;
  readonly failed: (message: string) => void;
};

/**
 * Runs in a session of its own, so that a Ctrl-C in the terminal reaches `up` alone, which decides the order. When `up` is
 * killed its IPC channel closes, and it stops by itself. It logs to a file and not to a pipe that would break then.
 */
function spawnService({ name, main, args = [], env, logFile }: ServiceSpec, reports: Reports) {
  const log = openSync(logFile, "a", 0o600);
  const child: ChildProcess = spawn(process.execPath, [main, ...args], {
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
    env: { NODE_COMPILE_CACHE: compileCache, ...process.env, ...env },
  });
  closeSync(log);
  child.on("message", (message: { type?: string; addresses?: Record<string, string>; message?: string }) => {
    if (message.type === "ready") reports.ready(message.addresses ?? {});
    if (message.type === "failed") reports.failed(message.message ?? `${name} did not start`);
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", () => resolve({ code: null, signal: null }));
  });
  return { child, exited };
}
