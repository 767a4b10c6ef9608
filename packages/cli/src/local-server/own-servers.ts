import { createHmac } from "node:crypto";
import type { Secrets } from "@tapedeck/infra/local/secrets";

// How to get into the NATS and the Postgres that `up` runs, without what it takes to run them.

export const natsUser = "tapedeck";

export const databaseName = "tapedeck";

/** Address for query, which owns the database. */
export function ownerUrl(address: string, { postgresPassword }: Secrets): string {
  return `postgres://postgres:${postgresPassword}@${address}/${databaseName}`;
}

/** Password of tapedeck_analyst. It is stable on one machine and gives no other access. */
export function analystPassword({ postgresPassword }: Secrets): string {
  return createHmac("sha256", postgresPassword).update("tapedeck_analyst").digest("base64url").slice(0, 16);
}
