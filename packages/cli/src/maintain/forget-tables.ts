import { foreignKeysToTables, forgetForeignTables } from "@tapedeck/query/for-cli/maintain";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { WorkspaceLogs } from "@tapedeck/shared/log/workspace-logs";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";

/**
 * Before anything is done to the log, because there is no way back afterwards.
 * @throws CommandError when `forgetTables` could not empty the tables
 */
export async function checkForgettable(databaseUrl: string | undefined): Promise<void> {
  const keys = databaseUrl === undefined ? [] : await foreignKeysToTables(databaseUrl);
  if (keys.length === 0) return;
  throw new CommandError(
    `the tables can't be emptied while foreign keys refer to them (${keys.join(", ")}): drop these, repeat the command, and add them again when query has made the tables from the log. Nothing was changed.`,
  );
}

/** Resets tables that reflect more than the logs have. True if it did. */
export async function forgetTables(nats: NatsConnection, databaseUrl: string | undefined): Promise<boolean> {
  if (databaseUrl === undefined) return false;
  await using stack = new AsyncDisposableStack();
  const open = (workspace: string) => openLog(nats, { workspace, create: false, syncKnown: true });
  const logs = stack.use(new WorkspaceLogs({ nats, open }));
  let isForgotten = false;
  for (const workspace of await logs.names()) {
    const { reader } = await logs.of(workspace);
    isForgotten = (await forgetForeignTables(databaseUrl, workspace, reader)) || isForgotten;
  }
  return isForgotten;
}
