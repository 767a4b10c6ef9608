import type { EventEmitter } from "node:events";
import { CompiledQuery, type DialectAdapter, Kysely, PostgresAdapter, PostgresDialect, type Transaction } from "kysely";
import pg from "pg";
import { clientOfPrimary, hostUrls } from "./primary.ts";
import type { Schema } from "./schema.ts";
import { settingInteger } from "./setting-integer.ts";

/** The schema that is served. A rebuild fills another schema, which takes this name at the end. */
export const liveSchema = "tapedeck";

/**
 * The schema beside a set of tables for what SQL readers may not read: it lies apart so that their tools don't list it. The
 * name is a function of the other one because triggers compute it, too.
 */
export function internalSchema(schema: string): string {
  return `${schema}_internal`;
}

/** The schemas of one set of tables. */
export function schemasOf(schema: string): readonly string[] {
  return [schema, internalSchema(schema)];
}

/** A pool of connections that see one set of tables. */
export type Database = AsyncDisposable & {
  readonly db: Kysely<Schema>;
  readonly schema: string;
  readonly sessionSettings: CompiledQuery;
  /** When the server last sent anything to the pool, by `performance.now()`. */
  readonly heardAt: () => number;
  /** One of the pool's connections, with or without the session settings. It must be released. */
  readonly client: () => Promise<pg.PoolClient>;
  /** Opens a connection outside the pool; `login`: as another user. */
  readonly connect: (more?: Pick<pg.ClientConfig, "pipeline"> & { readonly login?: Login }) => Promise<pg.Client>;
};
export type Login = { readonly user: string; readonly password: string };
export type Tx = Transaction<Schema>;

export type OpenDatabase = {
  /** May name several hosts, one of which takes writes: "postgres://user@a:5432,b:5432/tapedeck". */
  readonly url: string;
  readonly schema?: string;
  readonly connections?: number;
  /** The server ends a statement that takes longer; 0: never. */
  readonly statementTimeoutMs?: number;
};

/** Connects when first used. Every unqualified name means one in the handle's schema, or in the internal one beside it. */
export function openDatabase(options: OpenDatabase): Database {
  const { url, schema = liveSchema, connections = 10, statementTimeoutMs = 0 } = options;
  const urls = hostUrls(url);
  const Client = urls.length > 1 ? clientOfPrimary(urls) : pg.Client;
  const connection = {
    connectionString: urls[0] ?? url,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    application_name: "tapedeck-query",
    types: { getTypeParser },
  };
  const settings = sessionSettings(schema, statementTimeoutMs);
  const pool = new pg.Pool({ ...connection, Client, max: connections, pipeline: true });
  // The next statement on a lost connection reports the loss. Without listeners the error would end the process.
  pool.on("error", () => {});
  let heardAt = performance.now();
  pool.on("connect", (client) => {
    client.on("error", () => {});
    socketOf(client)?.on("data", () => {
      heardAt = performance.now();
    });
  });
  const db = new Kysely<Schema>({
    dialect: new QueryDialect({
      pool,
      onCreateConnection: async (connection) => {
        await connection.executeQuery(settings);
      },
    }),
  });
  return {
    db,
    schema,
    sessionSettings: settings,
    heardAt: () => heardAt,
    client: () => pool.connect(),
    connect: async ({ login, ...more } = {}) => {
      const as = login && { connectionString: urlFor(connection.connectionString, login) };
      const client = new Client({ ...connection, ...as, ...more });
      client.on("error", () => {}); // its end reports the loss
      await client.connect();
      return client;
    },
    async [Symbol.asyncDispose]() {
      // This ends the pool only where it has used it.
      await db.destroy();
      if (!pool.ending) await pool.end();
    },
  };
}

/** A user in the parameters counts more than one before the host, and the URL of a socket has no other place for it. */
function urlFor(url: string, { user, password }: Login): string {
  const as = new URL(url);
  as.searchParams.set("user", user);
  as.searchParams.set("password", password);
  return as.href;
}

/** pg's types lack the connection's socket. */
function socketOf(client: pg.PoolClient): EventEmitter | undefined {
  const { connection } = client as unknown as { readonly connection?: { readonly stream?: EventEmitter } };
  return connection?.stream;
}

/** The settings that every connection to the tables begins with. */
export function sessionSettings(schema: string, statementTimeoutMs = 0): CompiledQuery {
  return CompiledQuery.raw(
    "select set_config('search_path', $1, false), set_config('timezone', 'UTC', false), set_config('datestyle', 'ISO', false), set_config('statement_timeout', $2, false)",
    [schemasOf(schema).join(", "), String(settingInteger(statementTimeoutMs))],
  );
}

/** Migrations use a lock of their own (see lock.ts), because any role may take kysely's advisory lock. */
class QueryDialect extends PostgresDialect {
  override createAdapter(): DialectAdapter {
    return new QueryAdapter();
  }
}

class QueryAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

const int8 = 20;
const timestamptz = 1184;

/** Positions fit a number; timestamps keep their microseconds as text (see Schema). */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: "text" | "binary") => {
  if (format !== "binary" && oid === int8) return Number;
  if (format !== "binary" && oid === timestamptz) return timestampText;
  return pg.types.getTypeParser(oid, format as "text");
};

/** "2026-11-20 17:14:18.12+00" → "2026-11-20T17:14:18.120000Z". */
function timestampText(text: string): string {
  const [day = "", time = ""] = text.split(" ");
  const [clock = "", fraction = ""] = time.replace("+00", "").split(".");
  return `${day}T${clock}.${fraction.padEnd(6, "0")}Z`;
}
