import { execFile, execFileSync } from "node:child_process";
import { delimiter } from "node:path";
import { promisify } from "node:util";

/** Programs of the system alone: those of the checkout's packages are not meant. */
export const systemPath = [
  ...(process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules")),
  "/usr/sbin",
  "/sbin",
].join(delimiter);

/** Runs a program of this machine to its end. @returns what it says @throws Error with all that it said */
export async function onMachine(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const options = { maxBuffer: 64 * 2 ** 20, env: { ...process.env, PATH: systemPath }, ...(cwd && { cwd }) };
  const { stdout } = await promisify(execFile)(command, args, options).catch((error) => {
    throw new Error(`${command} ${args.join(" ")}\n${error.stdout}${error.stderr}`, { cause: error });
  });
  return stdout;
}

/** Why a test that needs these programs, and usually root, can't run here; undefined: it can. */
export function lacking(programs: readonly string[], { asRoot = true } = {}): string | undefined {
  const missing = programs.filter((program) => {
    try {
      execFileSync("sh", ["-c", `command -v ${program}`], { env: { PATH: systemPath }, stdio: "ignore" });
      return false;
    } catch {
      return true;
    }
  });
  const needed = [...(!asRoot || process.getuid?.() === 0 ? [] : ["root"]), ...missing];
  return needed.length === 0 ? undefined : `needs ${needed.join(", ")}`;
}
