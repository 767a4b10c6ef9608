import { userInfo } from "node:os";

/** Who runs this process; for a user without an entry in /etc/passwd, as in some containers, `USER` or its number. */
export function loginName(env: NodeJS.ProcessEnv = process.env): string {
  try {
    return userInfo().username;
  } catch {
    return env.USER || String(process.getuid?.() ?? "unknown");
  }
}
