import { blockStdio } from "../../display/output.ts";
import { isExecutable, onPath } from "../../on-path.ts";

/** Which stands there on every system, as scripts name it in their first line. */
const envProgram = "/usr/bin/env";
/** What `env` reads as one of its own words. */
const wordOfEnv = /^-$|=/;
/** Node ignores them from its start on. */
const ignored = ["SIGPIPE", "SIGXFSZ"] as const;

/**
 * The command becomes this very process, with what a shell would have given it. Returns where that can't be: such as for a
 * program that is not there.
 *
 * By way of `env`, because Node aborts when the system refuses a program. Whether it does can't be known before (a missing
 * interpreter or loader, another processor, a script without a first line that names its shell), and `env` ends or goes on
 * then as a shell does.
 */
export function takeOver(command: readonly string[]): void {
  const [program = ""] = command;
  const isThere = program.includes("/") ? isExecutable(program) : onPath(program) !== undefined;
  if (!isThere || wordOfEnv.test(program) || process.execve === undefined || !isExecutable(envProgram)) return;
  blockStdio();
  // A program inherits what is ignored, and not what is handled.
  for (const signal of ignored) process.on(signal, () => {});
  process.execve(envProgram, ["env", "--", ...command], process.env as Record<string, string>);
}
