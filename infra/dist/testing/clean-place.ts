import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { collect, type RunningCli } from "tapedeck/testing/cli";

/** A user who has never had Tapedeck: a home, a folder to work in, and where npm installs programs in that home. */
export type CleanPlace = AsyncDisposable & {
  readonly home: string;
  readonly work: string;
  readonly prefix: string;
  readonly env: Readonly<Record<string, string>>;
  readonly start: (command: string, args: readonly string[], env?: Readonly<Record<string, string>>) => RunningCli;
  /** Runs it to its end. */
  readonly run: (command: string, ...args: readonly string[]) => Promise<Ran>;
};

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** `programs`: folders for its PATH, before the system's. Nothing of the checkout is there, nor any setting. */
export async function cleanPlace(programs: readonly string[]): Promise<CleanPlace> {
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-clean-"));
  await chmod(folder, 0o711); // started by root, Postgres runs as another user
  const at = (name: string) => join(folder, name);
  const [home, work] = [at("home"), at("work")];
  const prefix = join(home, ".local");
  for (const each of [home, work, prefix]) await mkdir(each);
  const env = {
    HOME: home,
    PATH: [join(prefix, "bin"), ...programs, "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
    NO_COLOR: "1",
    // The registry and proxies of this machine, as its npm knows them.
    ...Object.fromEntries(
      Object.entries(process.env).filter(([name]) =>
        /^(npm_config_(registry|cafile)|.*_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i.test(name),
      ),
    ),
  } as Readonly<Record<string, string>>;
  const children: ChildProcess[] = [];
  return {
    home,
    work,
    prefix,
    env,
    start: (command, args, more = {}) => {
      const child = spawn(command, args, {
        cwd: work,
        env: { ...env, ...more },
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      children.push(child);
      return collect(child);
    },
    run: (command, ...args) =>
      new Promise((resolve) => {
        execFile(command, args, { cwd: work, env, maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === "number" ? error.code : 127;
          resolve({ code, stdout, stderr });
        });
      }),
    [Symbol.asyncDispose]: async () => {
      for (const child of children) child.kill("SIGKILL");
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Where this machine has a Node of its own, which is older than the checkout's; the checkout's where it has none. */
export async function ownNode(): Promise<string> {
  const outside = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  const found = await new Promise<string>((resolve) => {
    execFile("sh", ["-c", "command -v node"], { env: { PATH: outside.join(delimiter) } }, (_, stdout) =>
      resolve(stdout.trim()),
    );
  });
  return dirname(found === "" ? process.execPath : found);
}
