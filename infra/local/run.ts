import { type SpawnOptions, spawn } from "node:child_process";

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a short command to its end. A command that does not exist gives code null. */
export function run(command: string, args: readonly string[], options: SpawnOptions = {}, input = ""): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout?.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr?.on("data", (chunk) => {
      stderr += chunk;
    });
    child.stdin?.on("error", () => {}); // a command that does not read its input
    child.stdin?.end(input);
    child.once("error", (error) => resolve({ code: null, stdout, stderr: error.message }));
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}
