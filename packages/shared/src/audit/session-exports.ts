import type { AuditEntry } from "./entry.ts";
import type { AuditStore } from "./store.ts";

/** Somebody took a session away. */
export type SessionExport = Pick<AuditEntry, "time" | "who" | "kind">;

export const maxExports = 100;

/**
 * Lists who has exported a session, the oldest first, as far as the audit log reaches; at most 100. An entry names 20 sessions,
 * so a session that was exported with more of them may be missing. Rejects when the audit log can't be read.
 */
export async function sessionExports(
  store: Pick<AuditStore, "read">,
  { workspace, session }: { readonly workspace: string | undefined; readonly session: string },
): Promise<readonly SessionExport[]> {
  const found: SessionExport[] = [];
  for await (const { action, about, time, who, kind } of store.read({ workspace })) {
    const { sessions } = about;
    if (action !== "session.exported" || !Array.isArray(sessions) || !sessions.includes(session)) continue;
    if (found.push({ time, who, kind }) === maxExports) break;
  }
  return found;
}
