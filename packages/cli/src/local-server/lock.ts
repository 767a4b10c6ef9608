import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandLineOf } from "@tapedeck/infra/local/server-process";
import { delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import { CommandError } from "../command-error.ts";

/** What a running `tapedeck up` publishes, in `<data>/up-<ulid>.json`. */
export type RunningUp = {
  readonly pid: number;
  /** Distinguishes it from another process that got the number later. */
  readonly command: string;
  readonly mode: "demo" | "record";
  /** Where NATS and Postgres keep their data. */
  readonly storeDir: string;
  /** "host:port" by what listens there. Empty until all is ready. */
  readonly addresses: Readonly<Record<string, string>>;
  /** How its gateway lets people in. */
  readonly access?: { readonly tls: boolean; readonly auth: string } | undefined;
  /** The tapedeck.yaml that it was started with. */
  readonly configFile?: string | undefined;
  /** The sources that it taps itself, by full name, with the address that it dials. */
  readonly sources: readonly { readonly source: string; readonly address: string }[];
};

export type UpLock = AsyncDisposable & {
  /** The leftovers of an earlier, killed one were taken over. */
  readonly wasLeft: boolean;
  readonly publish: (running: Omit<RunningUp, "pid" | "command">) => Promise<void>;
};

export const lockFile = /^up-[0-9A-Z]{26}\.json$/;

/** The `up` that runs on this data directory; undefined if there is none, or only a killed one's leftovers. */
export async function runningUp(dataDir: string): Promise<RunningUp | undefined> {
  return (await findLocks(dataDir)).alive[0];
}

/**
 * Makes this process the only `up` on a data directory until it is disposed of. Takes over what a killed one left.
 *
 * Each puts its own file there and then looks for others, so of two at least one sees the other; none removes a live
 * one's file. Two that see each other back off for different times.
 * @throws CommandError when another one runs there
 */
export async function lockUp(dataDir: string, mode: RunningUp["mode"], storeDir: string): Promise<UpLock> {
  await mkdir(dataDir, { recursive: true });
  const name = `up-${ulid()}.json`;
  const file = join(dataDir, name);
  const own = { pid: process.pid, command: (await commandLineOf(process.pid)) ?? "" };
  const publish: UpLock["publish"] = async (running) => {
    await writeFile(`${file}.new`, `${JSON.stringify({ ...own, ...running })}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
  };
  for (;;) {
    await refuseIfRunning(dataDir, mode);
    await publish({ mode, storeDir, addresses: {}, sources: [] });
    const { alive, left } = await findLocks(dataDir, name);
    if (alive.length === 0) {
      await Promise.all(left.map((old) => rm(join(dataDir, old), { force: true })));
      return { wasLeft: left.length > 0, publish, [Symbol.asyncDispose]: () => rm(file, { force: true }) };
    }
    await rm(file, { force: true });
    await delay(50 + Math.random() * 500);
  }
}

async function refuseIfRunning(dataDir: string, mode: RunningUp["mode"]): Promise<void> {
  const [running] = (await findLocks(dataDir)).alive;
  if (running !== undefined) throw new CommandError(alreadyRuns(running, mode));
}

/** Finds other running instances, and the lock files of killed ones. */
async function findLocks(
  dataDir: string,
  except = "",
): Promise<{ alive: readonly RunningUp[]; left: readonly string[] }> {
  const names = (await readdir(dataDir).catch(() => [])).filter((name) => lockFile.test(name) && name !== except);
  const alive: RunningUp[] = [];
  const left: string[] = [];
  for (const name of names) {
    const found = parse(await readFile(join(dataDir, name), "utf8").catch(() => ""));
    if (found !== undefined && (await isAlive(found))) alive.push(found);
    else left.push(name);
  }
  return { alive, left };
}

function alreadyRuns({ pid, mode: running, addresses, access }: RunningUp, requested: RunningUp["mode"]): string {
  if (running === "demo" && requested === "record") {
    return `the demo runs here (process ${pid}), and it accepts no recordings: stop it first (Ctrl-C in its terminal, or kill ${pid}), then start again.`;
  }
  const scheme = access?.tls === true ? "https" : "http";
  const where = addresses.http === undefined ? "" : `, ${scheme}://${addresses.http}`;
  const what = running === "demo" ? "the demo" : "Tapedeck";
  return `${what} already runs here (process ${pid}${where}): use it, or stop it first (Ctrl-C in its terminal, or kill ${pid}).`;
}

function parse(text: string): RunningUp | undefined {
  try {
    return JSON.parse(text) as RunningUp;
  } catch {
    return undefined;
  }
}

async function isAlive({ pid, command }: RunningUp): Promise<boolean> {
  const running = await commandLineOf(pid);
  return running !== undefined && (command === "" || running === command);
}
