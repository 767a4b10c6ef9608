import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

type Functions = Readonly<Record<string, unknown>>;
type Parameters_<F> = F extends (...given: infer Args) => unknown ? Args : never;
type Result<F> = F extends (...given: never[]) => infer Returned ? Awaited<Returned> : never;

/** A separate process that runs the exported functions of one module: a generator, a client or a calibration. */
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

type Profiles = { readonly folder: string; readonly part: string };
let profiles: Profiles | undefined;

/**
 * From now on each worker leaves a .cpuprofile of its whole life. Set per process, because only its main program has
 * the setting.
 */
export function profileWorkers(into: Profiles | undefined): void {
  profiles = into;
}

/** `module`: a file URL, such as `new URL("../workers/requests.ts", import.meta.url)`. */
export async function startWorker<Module extends Functions>(module: URL, cores?: string): Promise<Worker<Module>> {
  const entry = fileURLToPath(new URL("worker-process.ts", import.meta.url));
  const name = module.pathname.split("/").at(-1) ?? "";
  const execArgv = ["--disable-warning=ExperimentalWarning", ...profiling(name)];
  const child = fork(entry, [module.href], {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    execArgv,
    ...(cores !== undefined && pinnedTo(cores, execArgv)),
  });
  const isProfiled = profiles !== undefined;
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
    const error = new Error(`${name} ended with ${code}`);
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
    [Symbol.asyncDispose]: () => end(child, isProfiled),
  };
}

function profiling(module: string): string[] {
  if (profiles === undefined) return [];
  const name = `${profiles.part}-worker-${module.replace(".ts", "")}`;
  // Node replaces the pattern with the process id: a part may start the same module twice.
  return ["--cpu-prof", `--cpu-prof-dir=${profiles.folder}`, `--cpu-prof-name=${name}-\${pid}.cpuprofile`];
}

/** Binds a running process, with all its threads. */
export function pin(pid: number, cores: string): void {
  spawnSync("taskset", ["-a", "-c", "-p", cores, String(pid)]);
}

/** Linux's taskset execs the program, so the process id and the channel to the parent stay. */
function pinnedTo(cores: string, execArgv: readonly string[]) {
  return { execPath: "taskset", execArgv: ["-c", cores, process.execPath, ...execArgv] };
}

async function end(child: ChildProcess, isProfiled: boolean): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  // Node writes a profile only on an orderly exit, such as a worker's when its parent disconnects.
  if (isProfiled) child.disconnect();
  else child.kill("SIGKILL");
  await exited;
}
