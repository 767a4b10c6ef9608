import { type AuditEntry, auditEntryOf } from "@tapedeck/shared/audit/entry";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import { loginName } from "@tapedeck/shared/service/login-name";
import type { NatsConnection } from "nats";
import { printError } from "../display/output.ts";

/** Records an action on the server's own machine, past the gateway: "alice on this machine". */
export async function auditHere(
  nats: NatsConnection,
  { workspace = "-", ...entry }: Pick<AuditEntry, "action" | "about"> & { readonly workspace?: string },
): Promise<void> {
  const store = await openAuditStore(nats);
  await store.append(auditEntryOf({ ...entry, workspace, ...userHere() }));
}

/** The user of this process as a caller, for the audit log. */
export function userHere(): Pick<AuditEntry, "who" | "kind"> {
  return { who: `${loginName()} on this machine`, kind: "local" };
}

/**
 * Waits for the entry of a completed action. An entry that can't be written is reported on stderr and is no failure: it must
 * not keep anybody from the rest, or from a result that is shown once.
 */
export async function auditDone(entry: Promise<void>): Promise<void> {
  try {
    await entry;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    printError(`tapedeck: this action is missing from the audit log: ${reason}`);
  }
}
