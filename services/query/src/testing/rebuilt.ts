import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { openDatabase } from "../db/database.ts";
import { privateSchema } from "../db/private.ts";
import type { Stage } from "./stage.ts";

/** Writes events, some in each message; resolves with the sequence of the last one. */
export async function written(on: Stage, events: readonly Event[]): Promise<number> {
  const offsets = await on.writeTogether(events, 5);
  return sequenceOf(offsets.at(-1) ?? logStart);
}

/** Names of the schemas that hold tables of the projection. */
export async function schemas(url: string): Promise<string[]> {
  await using database = openDatabase({ url, connections: 1 });
  const found = await database.db.introspection.getSchemas();
  return found.map(({ name }) => name).filter((name) => name.startsWith("tapedeck") && name !== privateSchema);
}
