import type { SettingsReader } from "@tapedeck/shared/service/settings";

/** The limits of each SQL login, in milliseconds and bytes. */
export type ReaderLimits = {
  readonly connections: number;
  readonly statementMs: number;
  readonly idleTransactionMs: number;
  readonly transactionMs: number;
  readonly lockMs: number;
  /** Temporary files of one connection. */
  readonly tempBytes: number;
};

export function readerLimits(read: SettingsReader): ReaderLimits {
  const second = 1_000;
  const byPostgres = "Postgres ends it, or query the connection.";
  return {
    connections: read.integer("limits.sql.connections", 20, {
      min: 1,
      description: "Connections of one login for SQL.",
      past: "Postgres refuses the connection.",
    }),
    statementMs: read.duration("limits.sql.statement", 60_000, {
      min: second,
      description: "The time that a statement of such a login may take.",
      past: byPostgres,
    }),
    idleTransactionMs: read.duration("limits.sql.idleTransaction", 60_000, {
      min: second,
      description: "The longest idle time of such a login within a transaction.",
      past: byPostgres,
    }),
    transactionMs: read.duration("limits.sql.transaction", 600_000, {
      min: second,
      description: "The time that a transaction of such a login may take.",
      past: byPostgres,
    }),
    lockMs: read.duration("limits.sql.lock", 5_000, {
      min: 10,
      description: "The time that such a login may wait for a lock.",
      past: "The statement is ended.",
    }),
    tempBytes: read.integer("limits.sql.tempBytes", 1024 ** 3, {
      min: 1024 ** 2,
      unit: "bytes",
      description: "Temporary files of one connection of such a login.",
      past: "The statement is ended.",
    }),
  };
}
