import {
  CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Kysely,
  PostgresAdapter,
  PostgresDialect,
  PostgresQueryCompiler,
  type QueryResult,
  sql,
  Transaction,
} from "kysely";
import pg from "pg";
import { type Database, sessionSettings, type Tx } from "./database.ts";
import type { Schema } from "./schema.ts";

/**
 * A connection whose statements are sent without waiting for the answers before them. The server runs them in the order in
 * which they were sent, so it is not idle while this process computes the next ones.
 */
export type Pipeline = AsyncDisposable & {
  readonly db: Kysely<Schema>;
  /** The connection is gone. */
  readonly isLost: () => boolean;
  /**
   * Resolves when the work is done and the commit is sent. What is sent from then on comes after the commit, whether or not
   * that succeeds.
   * @throws StatementError when a statement failed; any other error is the work's own
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<Committing<T>>;
};

/**
 * Postgres, or the connection to it, failed a statement of a transaction. The cause is the transaction's first failure:
 * what failed after it failed because of it.
 */
export class StatementError extends Error {
  override readonly name = "StatementError";
  /** The SQLSTATE of Postgres' answer; undefined when it did not answer. */
  readonly code: string | undefined;

  constructor(cause: Error) {
    super(cause.message, { cause });
    this.code = cause instanceof pg.DatabaseError ? cause.code : undefined;
  }
}

/**
 * `committed` rejects with a StatementError when nothing of the transaction is in the tables, or when that can't be known.
 */
export type Committing<T> = { readonly result: T; readonly committed: Promise<void> };

export async function openPipeline(database: Database): Promise<Pipeline> {
  const client = await database.connect({ pipeline: true });
  let isLost = false;
  client.once("end", () => {
    isLost = true;
  });
  const connection = new PipelinedConnection(client);
  const settings = [sessionSettings(database.schema), planSettings];
  await Promise.all(settings.map((each) => connection.executeQuery(each))).catch(async (error: unknown) => {
    await client.end().catch(() => {});
    throw error;
  });
  const tx = concurrent(connection);
  return {
    db: tx,
    isLost: () => isLost,
    async transaction(work) {
      // A failure of `begin` is one of the connection, which the work learns too.
      connection.send("begin").catch(() => {});
      try {
        const result = await work(tx);
        const committed = commit(connection);
        committed.catch(() => {}); // also when nothing awaits it any more
        return { result, committed };
      } catch (error) {
        // With the answer to the rollback, all statements before it are answered.
        await connection.send("rollback").catch(() => {});
        throw connection.failure === undefined ? error : new StatementError(connection.failure);
      }
    },
    [Symbol.asyncDispose]: () => client.end().catch(() => {}),
  };
}

/** The connections of pools that have the session settings from here. */
const settled = new WeakSet<pg.PoolClient>();

/** A transaction that only reads, on a connection of the pool, which it gives back when it is disposed. */
export type Reading = AsyncDisposable & {
  /** Statements that do not wait for each other's answers go along with each other. */
  readonly tx: Tx;
  /** Rejects when `tx` is not to be used. Statements may be sent before. */
  readonly started: Promise<unknown>;
};

/** Begins to read one snapshot, that of the first statement which reads. */
export async function beginReading(database: Database): Promise<Reading> {
  const client = await database.client();
  const connection = new PipelinedConnection(client);
  const started = Promise.all([
    settled.has(client) || connection.executeQuery(database.sessionSettings).then(() => settled.add(client)),
    connection.send("start transaction isolation level repeatable read read only"),
  ]);
  // A statement that follows it fails, too, and nobody else may be waiting.
  started.catch(() => {});
  return {
    tx: concurrent(connection),
    started,
    async [Symbol.asyncDispose]() {
      // The end of what only reads is not waited for.
      connection.send("rollback").then(
        () => client.release(),
        () => client.release(true),
      );
    },
  };
}

/** Postgres answers the commit of a failed transaction with a rollback, and not with an error. */
async function commit(connection: PipelinedConnection): Promise<void> {
  try {
    const { command } = await connection.send("commit");
    if (command !== "COMMIT") throw connection.failure ?? new Error("the transaction could not be committed");
  } catch (error) {
    throw new StatementError(error as Error);
  }
}

/** kysely's own transactions have one statement at a time. */
function concurrent(connection: PipelinedConnection): Tx {
  const dialect = new PostgresDialect({ pool: () => Promise.reject(new Error("a pipeline has one connection")) });
  const provider = { provideConnection: <T>(use: (one: DatabaseConnection) => Promise<T>) => use(connection) };
  const executor = new DefaultQueryExecutor(new PostgresQueryCompiler(), new PostgresAdapter(), provider);
  return new Transaction<Schema>({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}

/** What begins a transaction, or goes on with one before its failure. */
const beginning = /^(?:begin|start transaction|rollback to)\b/;

/** "current transaction is aborted": the answer to all statements after one that failed. */
const inFailedTransaction = "25P02";

/** "cached plan must not change result type": the answer where all columns of a table are read, and it has others now. */
const otherColumns = "0A000";

/**
 * Begins a statement that projecting repeats for ever: like an insert it is parsed and planned once for each connection, until
 * Postgres has other statistics of its tables. It must look up each of its keys by itself, in a lateral subquery with
 * `offset 0`. Where a plan may choose how to join, one that was made while the table was small would read all of it later.
 */
export const plannedOnce = sql`/* planned once */`;

const isPlannedOnce = /^\s*(?:insert\b|\/\* planned once \*\/)/;

/**
 * Writers read few rows by their keys, always by an index. A small table would be read without it, and a plan is kept while
 * the table grows. What no index has costs "too much" by this, for which Postgres would compile it.
 */
const planSettings = CompiledQuery.raw(
  "select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)",
);

/** More texts than projecting has. Texts beyond are not remembered, in case that one is ever made from values. */
const maxPrepared = 200;

/** How much is sent at once, so that the server can begin with it. */
const longBytes = 64 * 1024;

class PipelinedConnection implements DatabaseConnection {
  readonly #client: pg.Client;
  readonly #names = new Map<string, string>();
  #failure: Error | undefined;

  constructor(client: pg.Client) {
    this.#client = client;
  }

  /** The first failure of the transaction that was answered last. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  async executeQuery<Row>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const name = isPlannedOnce.test(text) ? this.#nameOf(text) : undefined;
    const { rows } = await this.send({ text, values: [...parameters], ...(name !== undefined && { name }) });
    return { rows: rows as Row[] };
  }

  /**
   * Short statements of one turn go to the server in one write. What fails only because a statement before it failed rejects
   * with that statement's error.
   */
  async send(statement: string | pg.QueryConfig): Promise<pg.QueryResult> {
    try {
      const answer = await this.#write(statement);
      if (beginning.test(typeof statement === "string" ? statement : statement.text)) this.#failure = undefined;
      return answer;
    } catch (error) {
      // Answers come in the order of the statements, so the first failure is the first one here.
      if (error instanceof pg.DatabaseError && error.code === inFailedTransaction && this.#failure) throw this.#failure;
      this.#failure ??= error as Error;
      // Its statements would fail from now on. The next connection prepares them anew.
      if (error instanceof pg.DatabaseError && error.code === otherColumns) void this.#client.end().catch(() => {});
      throw error;
    }
  }

  #write(statement: string | pg.QueryConfig): Promise<pg.QueryResult> {
    const { stream } = this.#client.connection;
    if (stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    const answer = this.#client.query(statement);
    if (stream.writableLength > longBytes) stream.uncork();
    return answer;
  }

  // biome-ignore lint/correctness/useYield: never streamed
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error("a pipeline does not stream");
  }

  #nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size === maxPrepared) return known;
    const name = `s${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}
