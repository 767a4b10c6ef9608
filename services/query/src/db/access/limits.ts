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
  const second = { min: 1_000 };
  return {
    connections: read.integer("limits.sql.connections", 20, { min: 1 }),
    statementMs: read.duration("limits.sql.statement", 60_000, second),
    idleTransactionMs: read.duration("limits.sql.idleTransaction", 60_000, second),
    transactionMs: read.duration("limits.sql.transaction", 600_000, second),
    lockMs: read.duration("limits.sql.lock", 5_000, { min: 10 }),
    tempBytes: read.integer("limits.sql.tempBytes", 1024 ** 3, { min: 1024 ** 2 }),
  };
}
