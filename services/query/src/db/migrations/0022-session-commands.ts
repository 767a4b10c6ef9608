import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The command in which a session was recorded, and the exit code with which it ended. */
export const sessionCommands: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable("sessions")
      .addColumn("exit_code", "integer")
      .addColumn("command_line", "text", (column) => column.notNull().defaultTo(""))
      .execute();
  },
};
