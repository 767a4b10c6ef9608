import { userInfo } from "node:os";

/** Returns the name of the user of this process. A user without an entry in /etc/passwd, as in some containers, has `USER` or its number. */
export function loginName(env: NodeJS.ProcessEnv = process.env): string {
  try {
    return userInfo().username;
  } catch {
    return env.USER || String(process.getuid?.() ?? "unknown");
  }
}
