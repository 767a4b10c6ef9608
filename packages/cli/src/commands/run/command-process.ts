import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Transform } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { isatty } from "node:tty";
import { delay } from "@tapedeck/shared/sync/delay";

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type CommandProcess = {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** From now on signals are ours; the process is gone. */
  readonly release: () => void;
};

const passed = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/**
 * Starts a command in our place: it has our terminal (its stderr goes through `stderr` where that is given), and signals
 * that come to us reach it once. Rejects when it can't be started.
 */
export async function startCommand(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  stderr?: Transform,
): Promise<CommandProcess> {
  const [program = "", ...args] = command;
  // Before the command starts, as it can be signalled from its first moment on. No handler runs before all this has been done.
  const handlers = passed.map((signal) => [signal, () => void pass(signal)] as const);
  for (const [signal, handler] of handlers) process.on(signal, handler);
  const child = spawn(program, args, { stdio: ["inherit", "inherit", stderr === undefined ? "inherit" : "pipe"], env });
  const witness = groupWitness();
  const pass = async (signal: NodeJS.Signals) => {
    if (!(await witness.saw(signal))) child.kill(signal);
  };
  const release = () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
    witness.leave();
  };
  const shown = stderr !== undefined && child.stderr !== null ? passOn(child.stderr, stderr) : undefined;
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", async (code, signal) => {
      await shown?.(lastWordsMs);
      // On a busy machine the signal that ended the command may come to us in the same turn, and behind its exit.
      await setImmediate();
      resolve({ code, signal });
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  }).catch((error: unknown) => {
    release();
    throw error;
  });
  child.on("error", () => {});
  return {
    pid: child.pid ?? 0,
    exited,
    release,
  };
}

/** What the command leaves running may hold its stderr for ever. */
const lastWordsMs = 1_000;

/** Gives a function that waits for all to have been passed on, but not for long. */
function passOn(from: Readable, through: Transform): (boundMs: number) => Promise<void> {
  const over = new AbortController();
  through.once("end", () => over.abort());
  from.pipe(through).pipe(process.stderr, { end: false });
  return (boundMs) => delay(boundMs, over.signal);
}

/**
 * Tells whether a signal came to our whole process group (Ctrl-C in the terminal, `timeout`), so that the command has it
 * already and must not get it twice, or to us alone (`kill`). Nothing in Node says who else got it, so a `cat` sits
 * beside us in the group: it dies of what comes to all, and else repeats what it is sent. A process on which a fatal signal
 * waits runs no more, so the answer does not depend on how busy the machine is.
 */
function groupWitness() {
  const patienceMs = 5_000;
  let witness = spawnWitness();

  return {
    saw: async (signal: NodeJS.Signals): Promise<boolean> => {
      const asked = witness;
      if (!(await asked.started)) return isatty(0) && signal !== "SIGTERM";
      const answered = new AbortController();
      asked.repeated.once("data", () => answered.abort());
      asked.child.stdin?.write("alive?\n");
      await delay(patienceMs, AbortSignal.any([asked.gone, answered.signal]));
      if (!asked.gone.aborted) return false;
      if (witness === asked) witness = spawnWitness();
      return true;
    },
    leave: () => witness.child.kill("SIGKILL"),
  };
}

function spawnWitness() {
  // Ends with us, whatever becomes of us: its input closes then.
  const child = spawn("cat", [], { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.on("error", () => {});
  child.unref();
  const repeated = child.stdout as Socket;
  repeated.resume();
  repeated.unref();
  const gone = new AbortController();
  child.once("exit", () => gone.abort());
  const started = new Promise<boolean>((resolve) => {
    child.once("spawn", () => resolve(true));
    child.once("error", () => resolve(false));
  });
  return { child, repeated, started, gone: gone.signal };
}
