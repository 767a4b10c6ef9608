import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { sql } from "kysely";
import type { Database } from "../../db/database.ts";

/** The names of zones by their lower case, which are read once: Postgres reads a thousand files for them. */
const known = new WeakMap<Database, Promise<ReadonlyMap<string, string>>>();

/**
 * The zone's name as Postgres has it: the one that was given, or what this Node calls the same zone. Either may have only the
 * older or only the newer of two names (Asia/Calcutta, Asia/Kolkata). Other texts are refused, offsets included, because
 * Postgres takes them for patterns of POSIX, with their sign the other way round.
 * @throws TapedeckError invalid_argument
 */
export async function zoneName(database: Database, zone: string): Promise<string> {
  if (zone === "") return "UTC";
  const names = await namesOf(database);
  const [name] = [zone, nameInNode(zone)].flatMap((one) => names.get(one.toLowerCase()) ?? []);
  if (name !== undefined) return name;
  throw invalidArgument(`there is no time zone "${zone}": use a name such as Europe/Berlin`, "zone");
}

function namesOf(database: Database): Promise<ReadonlyMap<string, string>> {
  let names = known.get(database);
  if (names === undefined) {
    names = readNames(database);
    known.set(database, names);
    names.catch(() => known.delete(database));
  }
  return names;
}

async function readNames({ db }: Database): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ name: string }>`select name from pg_timezone_names`.execute(db);
  return new Map(rows.map(({ name }) => [name.toLowerCase(), name]));
}

function nameInNode(zone: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return "";
  }
}
