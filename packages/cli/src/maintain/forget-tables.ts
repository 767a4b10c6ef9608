import { forgetForeignTables } from "@tapedeck/query/for-cli/maintain";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { NatsConnection } from "nats";

/** Resets tables that reflect more than the log has. True if it did. */
export async function forgetTables(nats: NatsConnection, databaseUrl: string | undefined): Promise<boolean> {
  if (databaseUrl === undefined) return false;
  await using log = await openLog(nats, { create: false, syncKnown: true });
  return forgetForeignTables(databaseUrl, log.reader);
}
