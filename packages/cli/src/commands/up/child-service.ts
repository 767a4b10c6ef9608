import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { ServiceReport } from "@tapedeck/shared/service/process/lifecycle";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
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
  readonly onReport?: (report: ServiceReport) => void;
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
  const service = new ChildService(spec);
  await service.ready();
  return service;
}

export class ChildService implements AsyncDisposable {
  readonly #spec: ServiceSpec;
  readonly #stopping = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #current: ReturnType<typeof spawnService>;
  #addresses: Readonly<Record<string, string>> = {};
  /** Set once it was ready. */
  #over: Promise<void> | undefined;

  constructor(spec: ServiceSpec) {
    this.#spec = spec;
    this.#current = this.#launch();
  }

  get name(): string {
    return this.#spec.name;
  }

  /** The addresses from the last time it was ready. */
  addresses(): Readonly<Record<string, string>> {
    return this.#addresses;
  }

  /** Resolves when it is ready for the first time; it is supervised from then on. */
  async ready(): Promise<void> {
    const { name, logFile } = this.#spec;
    const died = this.#current.exited.then(({ code, signal }) => {
      throw new CommandError(`${name} did not start (${signal ?? `exit code ${code}`}): see ${logFile}.`);
    });
    await Promise.race([this.#first.promise, died]);
    died.catch(() => {});
    this.#over ??= this.#supervise();
  }

  /** A message over its IPC channel; lost while it is down. */
  send(message: string): void {
    const { child } = this.#current;
    if (child.connected) child.send(message);
  }

  /** Asks it to stop and waits until it is gone. It is not started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const { child } = this.#current;
    child.kill("SIGTERM");
    const gaveUp = startTimer(() => child.kill("SIGKILL"), this.#spec.stopMs);
    await this.#over;
    stopTimer(gaveUp);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #launch(): ReturnType<typeof spawnService> {
    return spawnService(this.#spec, {
      ready: (at) => {
        this.#addresses = at;
        this.#first.resolve();
      },
      failed: (message) => this.#first.reject(new CommandError(message)),
      other: (report) => this.#spec.onReport?.(report),
    });
  }

  async #supervise(): Promise<void> {
    const stopping = this.#stopping.signal;
    const wait = backoff(200, 10_000);
    for (;;) {
      const started = performance.now();
      const exit = await this.#current.exited;
      if (stopping.aborted) return;
      if (performance.now() - started > steadyMs) wait.reset();
      this.#spec.onDeath?.(exit.signal === null ? `ended with code ${exit.code}` : `was killed (${exit.signal})`);
      await delay(wait.next(), stopping);
      if (stopping.aborted) return;
      this.#current = this.#launch();
    }
  }
}

type Reports = {
  readonly ready: (addresses: Readonly<Record<string, string>>) => void;
  readonly failed: (message: string) => void;
  readonly other: (report: ServiceReport) => void;
};

type FirstReport =
  | { readonly type: "ready"; readonly addresses?: Record<string, string> }
  | { readonly type: "failed"; readonly message?: string };

/**
 * Half the memory of a service on a machine that has other work. V8's young generation grows to three times 16 MiB while
 * a service starts and keeps them; glibc has an arena for each of Node's threads. Neither costs a service time at 2,000 events/s.
 */
export const smallMemory = {
  flags: ["--max-semi-space-size=2"],
  env: { MALLOC_ARENA_MAX: "1" },
} as const;

/**
 * Runs in a session of its own, so that a Ctrl-C in the terminal reaches `up` alone, which decides the order. When `up` is
 * killed its IPC channel closes, and it stops by itself. It logs to a file and not to a pipe that would break then.
 */
function spawnService({ name, main, args = [], env, logFile }: ServiceSpec, reports: Reports) {
  const log = openSync(logFile, "a", 0o600);
  const child: ChildProcess = spawn(process.execPath, [...smallMemory.flags, main, ...args], {
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
    env: { NODE_COMPILE_CACHE: compileCache, ...smallMemory.env, ...process.env, ...env },
  });
  closeSync(log);
  child.on("message", (message: FirstReport | ServiceReport) => {
    if (message.type === "log-full") reports.other(message);
    if (message.type === "ready") reports.ready(message.addresses ?? {});
    if (message.type === "failed") reports.failed(message.message ?? `${name} did not start`);
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", () => resolve({ code: null, signal: null }));
  });
  return { child, exited };
}
