import { constants as system } from "node:os";
import type { Transform } from "node:stream";
import { sentenceOf } from "../../command-error.ts";
import { blockStdio } from "../../display/output.ts";
import { onPath } from "../../on-path.ts";
import { type CommandExit, type CommandProcess, startCommand } from "./command-process.ts";
import type { RunPlan } from "./plan.ts";
import { takeOver } from "./take-over.ts";
import { warn } from "./warnings.ts";

/** Ends this process as a shell would where the program can't be run. */
export async function start(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  stderr?: Transform,
  plan?: RunPlan,
): Promise<CommandProcess> {
  try {
    return await startCommand(command, env, stderr);
  } catch (error) {
    plan?.eventLog?.remove();
    const [program = ""] = command;
    const { code } = error as NodeJS.ErrnoException;
    // A folder on the PATH that may not be looked into makes EACCES of any name that is nowhere.
    const missing = code === "ENOENT" || (code === "EACCES" && !program.includes("/") && onPath(program) === undefined);
    const why = code === "EACCES" ? "permission denied" : sentenceOf(error);
    warn(missing ? `${program}: command not found` : `${program} can't be run: ${why}`);
    // The exit codes of a shell.
    process.exit(missing ? 127 : 126);
  }
}

/** Nothing of us stays: the command takes over this very process, where the system can do that. */
export async function runAsItIs(command: readonly string[]): Promise<void> {
  takeOver(command);
  const ran = await start(command, process.env);
  endAs(await ran.exited);
}

/** Ends this process as the command ended. */
export function endAs({ code, signal }: CommandExit): never {
  if (signal !== null) {
    // Node does it itself, but not at each signal.
    blockStdio();
    process.kill(process.pid, signal);
  }
  process.exit(code ?? 128 + (system.signals[signal ?? "SIGTERM"] ?? 15));
}
