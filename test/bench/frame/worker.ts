import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

type Functions = Readonly<Record<string, unknown>>;
type Parameters_<F> = F extends (...given: infer Given) => unknown ? Given : never;
type Result<F> = F extends (...given: never[]) => infer Returned ? Awaited<Returned> : never;

/** A process of its own that runs the exported functions of one module: a generator, a client or a calibration. */
export type Worker<Module> = AsyncDisposable & {
  readonly pid: number;
  call<Name extends keyof Module & string>(
    name: Name,
    ...given: Parameters_<Module[Name]>
  ): Promise<Result<Module[Name]>>;
};

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly ready: true };

/** `module`: a file URL, such as `new URL("../workers/requests.ts", import.meta.url)`. */
export async function startWorker<Module extends Functions>(module: URL, cores?: string): Promise<Worker<Module>> {
  const entry = fileURLToPath(new URL("worker-process.ts", import.meta.url));
  const child = fork(entry, [module.href], {
    ...{ serialization: "advanced", stdio: ["ignore", "ignore", "inherit", "ipc"] },
    execArgv: ["--disable-warning=ExperimentalWarning"],
    ...(cores !== undefined && pinnedTo(cores)),
  });
  const calls = new Map<number, PromiseWithResolvers<unknown>>();
  const ready = Promise.withResolvers<void>();
  let next = 1;
  child.on("message", (answer: Answer) => {
    if ("ready" in answer) return ready.resolve();
    const call = calls.get(answer.id);
    calls.delete(answer.id);
    if ("error" in answer) call?.reject(new Error(answer.error));
    else call?.resolve(answer.result);
  });
  child.once("exit", (code) => {
    const error = new Error(`${module.pathname.split("/").at(-1)} ended with ${code}`);
    ready.reject(error);
    for (const call of calls.values()) call.reject(error);
  });
  await ready.promise;
  return {
    pid: child.pid ?? 0,
    call: (name, ...given) => {
      const call = Promise.withResolvers<unknown>();
      calls.set(next, call);
      child.send({ id: next, name, given });
      next += 1;
      return call.promise as Promise<never>;
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** Binds a process that runs already, with all its threads. */
export function pin(pid: number, cores: string): void {
  spawnSync("taskset", ["-a", "-c", "-p", cores, String(pid)]);
}

/** Linux's taskset becomes the program that it starts, so the process id and the channel to the parent stay. */
function pinnedTo(cores: string) {
  return { execPath: "taskset", execArgv: ["-c", cores, process.execPath, "--disable-warning=ExperimentalWarning"] };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
