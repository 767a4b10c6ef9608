import { spawn } from "node:child_process";
import type { Readable, Transform } from "node:stream";
import { delay } from "@tapedeck/shared/sync/delay";
import { writeRawError } from "../../display/output.ts";
import { GroupWitness } from "./group-witness.ts";

export type CommandExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type CommandProcess = {
  readonly pid: number;
  readonly exited: Promise<CommandExit>;
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
  const witness = new GroupWitness();
  const pass = async (signal: NodeJS.Signals) => {
    if (!(await witness.saw(signal))) child.kill(signal);
  };
  const release = () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
    witness.leave();
  };
  const forwarded = stderr !== undefined && child.stderr !== null ? passOn(child.stderr, stderr) : undefined;
  const exited = new Promise<CommandExit>((resolve) => {
    child.once("exit", async (code, signal) => {
      await Promise.all([forwarded?.(lastWordsMs), witness.settled()]);
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

/** Processes that the command leaves running may hold its stderr open for ever. */
const lastWordsMs = 1_000;

/** Gives a function that waits for all to have been passed on, but not for long. */
function passOn(from: Readable, through: Transform): (boundMs: number) => Promise<void> {
  const over = new AbortController();
  through.once("end", () => over.abort());
  // The command must not notice that its output is no longer read: it would wait for us for ever.
  from.pipe(through).on("data", writeRawError);
  return (boundMs) => delay(boundMs, over.signal);
}
