import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { sql } from "kysely";
import { Client } from "pg";
import { expect, inject, it } from "vitest";
import { openDatabase } from "./database.ts";
import { hostUrls } from "./primary.ts";

it("finds the one of several servers that takes writes, also after another one has become it", async () => {
  const primary = new URL(inject("postgres"));
  await using standby = await startStandby();
  const away = `127.0.0.1:${await ownPort()}`;
  const both = `postgres://postgres@127.0.0.1:${standby.port},${away},${primary.host}/postgres`;
  const portOf = async (url: string) => {
    await using database = openDatabase({ url, connections: 1 });
    const { rows } = await sql<{ port: number }>`select inet_server_port() as port`.execute(database.db);
    const client = await database.connect();
    const alone = await client.query<{ port: number }>("select inet_server_port() as port");
    await client.end();
    expect(alone.rows).toEqual(rows);
    return rows[0]?.port;
  };
  expect(await portOf(both)).toBe(Number(primary.port));

  const failedOver = `postgres://postgres@127.0.0.1:${standby.port},${away}/postgres`;
  await expect(portOf(failedOver)).rejects.toThrow(
    `no Postgres takes writes: 127.0.0.1:${standby.port} is a standby; connect ECONNREFUSED ${away}`,
  );
  const client = new Client(standby.url("postgres"));
  await client.connect();
  await client.query("select pg_promote()");
  await client.end();
  expect(await portOf(failedOver)).toBe(standby.port);
});

it.each([
  ["postgres://u:p@a:5432/db", ["postgres://u:p@a:5432/db"]],
  ["postgres://u:p@a:1,b:2/db", ["postgres://u:p@a:1/db", "postgres://u:p@b:2/db"]],
  [
    "postgresql://a,[::1]:2/db?sslmode=require",
    ["postgresql://a/db?sslmode=require", "postgresql://[::1]:2/db?sslmode=require"],
  ],
  ["postgres://a,b/db?target_session_attrs=read-write", ["postgres://a/db", "postgres://b/db"]],
  [
    "postgres://a,b/db?target_session_attrs=primary&sslmode=require",
    ["postgres://a/db?sslmode=require", "postgres://b/db?sslmode=require"],
  ],
  ["postgres://a,b/db?x=1&target_session_attrs=any", ["postgres://a/db?x=1", "postgres://b/db?x=1"]],
])("%s", (url, urls) => {
  expect(hostUrls(url)).toEqual(urls);
});

/** A server that waits for another one's changes, of which there are none. */
async function startStandby() {
  const dataDir = join(inject("serversFolder"), `standby-${randomBytes(6).toString("hex")}`);
  const options = { dataDir, port: await ownPort(), fsync: false };
  await (await startPostgres(options)).stop();
  await writeFile(join(dataDir, "standby.signal"), "");
  return startPostgres({ ...options, persistent: false });
}
