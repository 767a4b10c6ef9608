import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandLineOf } from "@tapedeck/infra/local/server-process";
import { CommandError } from "../command-error.ts";

/** What a running `tapedeck up` says of itself, in `<data>/up.json`. */
export type RunningUp = {
  readonly pid: number;
  /** Tells it from another process that got the number later. */
  readonly command: string;
  readonly mode: "demo" | "record";
  /** Where NATS and Postgres keep their data. */
  readonly storeDir: string;
  /** "host:port" by what listens there. Empty until all is ready. */
  readonly addresses: Readonly<Record<string, string>>;
};

export type UpLock = AsyncDisposable & {
  /** What an earlier one, which was killed, left here was taken over. */
  readonly wasLeft: boolean;
  readonly tell: (running: Omit<RunningUp, "pid" | "command">) => Promise<void>;
};

const fileOf = (dataDir: string): string => join(dataDir, "up.json");

/** The `up` that runs on this data directory; undefined when there is none, or only what a killed one left. */
export async function runningUp(dataDir: string): Promise<RunningUp | undefined> {
  const text = await readFile(fileOf(dataDir), "utf8").catch(() => "");
  const found = parse(text);
  return found !== undefined && (await isAlive(found)) ? found : undefined;
}

/**
 * Makes this process the only `up` on a data directory until it is disposed of. What a killed one left is taken over.
 * @throws CommandError when another one runs there
 */
export async function lockUp(dataDir: string, mode: RunningUp["mode"], storeDir: string): Promise<UpLock> {
  const file = fileOf(dataDir);
  const own = { pid: process.pid, command: (await commandLineOf(process.pid)) ?? "" };
  const half = `${file}.${randomUUID()}`;
  const write = async (running: Omit<RunningUp, "pid" | "command">) => {
    await writeFile(half, `${JSON.stringify({ ...own, ...running })}\n`, { mode: 0o600 });
  };
  await mkdir(dataDir, { recursive: true });
  await write({ mode, storeDir, addresses: {} });
  let wasLeft = false;
  try {
    // link() puts a whole file there, or says that there is one.
    while (!(await isLinked(half, file))) {
      await refuseUnlessLeft(file, mode);
      wasLeft = true;
    }
  } finally {
    await rm(half, { force: true });
  }
  return {
    wasLeft,
    tell: async (running) => {
      await write(running);
      await rename(half, file);
    },
    [Symbol.asyncDispose]: () => rm(file, { force: true }),
  };
}

async function isLinked(half: string, file: string): Promise<boolean> {
  try {
    await link(half, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Two that find the same left file must not each remove what the other has just put there: a rename has one winner. */
async function refuseUnlessLeft(file: string, mode: RunningUp["mode"]): Promise<void> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return;
  const found = parse(text);
  if (found !== undefined && (await isAlive(found))) throw new CommandError(alreadyRuns(found, mode));
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, "utf8")) !== text) await link(aside, file).catch(() => {});
  await rm(aside, { force: true });
}

function alreadyRuns({ pid, mode: running, addresses }: RunningUp, wanted: RunningUp["mode"]): string {
  if (running === "demo" && wanted === "record") {
    return `the demo runs here (process ${pid}), and your recordings never meet it: stop it first (Ctrl-C in its terminal, or kill ${pid}), then start again.`;
  }
  const where = addresses.http === undefined ? "" : `, http://${addresses.http}`;
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
