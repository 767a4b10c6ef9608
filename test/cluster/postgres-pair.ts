import { execFile } from "node:child_process";
import { appendFile, chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { certify } from "../operations/encrypted-servers.ts";
import type { RunLogs } from "./run-logs.ts";
import type { Secured } from "./secured.ts";

const run = promisify(execFile);

/**
 * How long a replica that lost its primary waits before it asks it again. Now and then (twice in 25 fail-overs) Postgres
 * notices only then that it is promoted, and its default is 5 s. docs/cluster.md advises the same.
 */
const retryMs = 200;

type PostgresPairOptions = { readonly secured?: Secured | undefined; readonly logs: RunLogs };

type Side = { readonly dataDir: string; readonly port: number; readonly logFile: string };

/** A primary and a replica that streams from it asynchronously. A fail-over swaps the roles. */
export class PostgresPair implements AsyncDisposable {
  readonly #sides: readonly [Side, Side];
  readonly #running = new Map<Side, Postgres>();
  readonly #secured: Secured | undefined;
  #primary: Side;

  private constructor(sides: readonly [Side, Side], by: Secured | undefined) {
    this.#sides = sides;
    this.#secured = by;
    this.#primary = sides[0];
  }

  /** With `secured` its certificate is checked by everybody, the replica included. */
  static async start(folder: string, { secured: by, logs }: PostgresPairOptions): Promise<PostgresPair> {
    const side = async (name: string) => ({
      dataDir: join(folder, name),
      port: await ownPort(),
      logFile: logs.fileOf(name),
    });
    const pair = new PostgresPair([await side("postgres-1"), await side("postgres-2")], by);
    const { dataDir } = pair.#primary;
    const server = await pair.#launch(pair.#primary);
    await server.ensureDatabase("tapedeck");
    if (by !== undefined) await certify(server, dataDir, by.certificate);
    await pair.startReplica();
    return pair;
  }

  /** The value for `postgres.url`. */
  get url(): string {
    return this.#urlOf(...this.#sides);
  }

  get primaryUrl(): string {
    return this.#urlOf(this.#primary);
  }

  /** Makes an empty database on the primary; returns its URL. */
  async makeDatabase(name: string): Promise<string> {
    await this.#running.get(this.#primary)?.ensureDatabase(name);
    return this.#urlOf(this.#primary).replace("/tapedeck", `/${name}`);
  }

  /** Kills the primary with SIGKILL, then promotes the replica; resolves when it takes writes. */
  async failOver(): Promise<void> {
    await this.#running.get(this.#primary)?.kill("SIGKILL");
    this.#running.delete(this.#primary);
    this.#primary = this.#replica;
    await ask(this.primaryUrl, "select pg_promote()");
  }

  /** Makes the other side a copy of the primary again; it then follows the primary. */
  async startReplica(): Promise<void> {
    const replica = this.#replica;
    await copy(this.#primary, replica, { url: this.primaryUrl, by: this.#secured });
    await this.#launch(replica);
    await until(
      async () =>
        (await ask(this.primaryUrl, "select 1 from pg_stat_replication where state = 'streaming'")).length > 0,
      { message: "the replica to follow" },
    );
  }

  /** Cleanly stops and starts both, the replica first. */
  async restart(): Promise<void> {
    for (const side of [this.#replica, this.#primary]) {
      await this.#running.get(side)?.stop();
      await this.#launch(side);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.values()].map((server) => server.stop()));
  }

  get #replica(): Side {
    return this.#sides[0] === this.#primary ? this.#sides[1] : this.#sides[0];
  }

  #urlOf(...sides: readonly Side[]): string {
    const hosts = sides.map(({ port }) => `localhost:${port}`).join(",");
    const tls = this.#secured && `?sslmode=verify-full&sslrootcert=${this.#secured.caFile}`;
    return `postgres://postgres@${hosts}/tapedeck${tls ?? ""}`;
  }

  async #launch(side: Side): Promise<Postgres> {
    const server = await until(() => startPostgres(side), { message: "Postgres to start" });
    this.#running.set(side, server);
    return server;
  }
}

/** Works like pg_basebackup, which is not among the programs that npm installs. */
async function copy(
  from: Side,
  to: Side,
  { url, by }: { readonly url: string; readonly by: Secured | undefined },
): Promise<void> {
  await rm(to.dataDir, { recursive: true, force: true });
  const client = new Client(url);
  await client.connect();
  try {
    await client.query("select pg_backup_start('replica', true)");
    // Files that appear or vanish meanwhile are in the WAL.
    await run("cp", ["-a", from.dataDir, to.dataDir]).catch((error: Error) => {
      if (!error.message.includes("No such file")) throw error;
    });
    const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
    for (const left of ["postmaster.pid", "postmaster.opts"]) await rm(join(to.dataDir, left), { force: true });
    const owner = await stat(to.dataDir);
    const source = `host=localhost port=${from.port} user=postgres application_name=replica${by ? ` sslmode=verify-full sslrootcert=${by.caFile} sslcertmode=disable` : ""}`;
    const settings = `primary_conninfo = '${source}'\nwal_retrieve_retry_interval = '${retryMs}ms'\n`;
    await appendFile(join(to.dataDir, "postgresql.auto.conf"), settings);
    for (const [name, text] of Object.entries({ backup_label: rows[0]?.labelfile ?? "", "standby.signal": "" })) {
      await writeFile(join(to.dataDir, name), text);
      await chown(join(to.dataDir, name), owner.uid, owner.gid);
    }
  } finally {
    await client.end();
  }
}

async function ask(url: string, question: string): Promise<readonly unknown[]> {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query(question)).rows;
  } finally {
    await client.end();
  }
}
