import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import type { NatsConnection } from "nats";

/** The audit log so far, without times. */
export async function auditEntries(nats: NatsConnection): Promise<readonly Omit<AuditEntry, "time">[]> {
  const entries = await Array.fromAsync((await openAuditStore(nats)).read({}));
  return entries.map(({ time: _, ...entry }) => entry);
}
