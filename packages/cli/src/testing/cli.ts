import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../bin/tapedeck.mjs", import.meta.url));

export type RunningCli = AsyncDisposable & {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Exit code, or the signal that it died of. */
  readonly ended: Promise<number | string>;
};

export type StartCli = {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What runs it and is replaced by it, such as `unshare --mount`; what it is to run follows these words. */
  readonly within?: readonly string[];
};

/** Starts the CLI as its users do, in a process group of its own. */
export function startCli(args: readonly string[], { cwd, env = {}, within = [] }: StartCli): RunningCli {
  const [command = "", ...words] = [...within, process.execPath, main, ...args];
  return collect(
    spawn(command, words, {
      cwd,
      // Nobody has logged in here, even if the user who runs the tests has.
      env: { ...withoutOurs(process.env), XDG_CONFIG_HOME: join(cwd, "config"), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    }),
  );
}

export function collect(child: ChildProcess): RunningCli {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (chunk: Buffer) => {
      output[name] += chunk;
    });
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal ?? "?"));
  });
  return {
    child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** The settings of the machine that runs the tests must have no effect. */
function withoutOurs(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign = /^(TAPEDECK_|SKAFFOLD_|VAGRANT_|GITHUB_|GITLAB_|CI|JENKINS_)/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.test(name)));
}
