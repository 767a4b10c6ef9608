import { userInfo } from "node:os";
import { type AuditEntry, auditEntryOf } from "@tapedeck/shared/audit/entry";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import type { NatsConnection } from "nats";

/** Records an action on the server's own machine, past the gateway: "alice on this machine". */
export async function auditHere(
  nats: NatsConnection,
  { workspace = "-", ...entry }: Pick<AuditEntry, "action" | "about"> & { readonly workspace?: string },
): Promise<void> {
  const store = await openAuditStore(nats);
  await store.append(auditEntryOf({ ...entry, workspace, who: `${loginName()} on this machine` }));
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody"); // a user without a name, as in some containers
  }
}
