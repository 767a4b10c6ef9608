import { execFile } from "node:child_process";

const timeoutMs = 2_000;

/** What git prints; undefined: it failed or took too long. Takes no lock, waits for none. Never rejects. */
export function git(folder: string, ...args: string[]): Promise<string | undefined> {
  // Takes no lock of the index, which would block the user's own git. Fetches nothing and prompts for nothing.
  const env = { ...process.env, GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", GIT_TERMINAL_PROMPT: "0" };
  const options = { cwd: folder, timeout: timeoutMs, maxBuffer: 64 << 20, env };
  return new Promise((resolve) => {
    execFile("git", args, options, (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}
