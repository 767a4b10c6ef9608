import { jetstreamManager } from "@nats-io/jetstream";
import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { auditStream, openAuditStore } from "@tapedeck/shared/audit/store";
import type { NatsConnection } from "nats";

/** The audit log so far, without times. */
export async function auditEntries(nats: NatsConnection): Promise<readonly Omit<AuditEntry, "time">[]> {
  const entries = await Array.fromAsync((await openAuditStore(nats)).read({}));
  return entries.map(({ time: _, ...entry }) => entry);
}

/** Makes an audit log that has no room for any entry. */
export async function refuseAudit(nats: NatsConnection): Promise<void> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  await jsm.streams.add({ name: auditStream, subjects: ["tapedeck-audit.>"], max_msg_size: 1 });
}
