import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { expect, inject, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { LocalServerError } from "./local-server-error.ts";
import { startPostgres } from "./postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres: string;
  }
}

/** With mode 700, so that as root these tests also show that Postgres gets through a folder of root's. */
const folder = async () => join(await temporaryFolder(), "data");

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

it("data survive a kill -9, and a pid file whose number belongs to somebody else by now", async () => {
  const dataDir = await folder();
  const options = { dataDir, port: 0, password: "p@ss/word" };
  const first = await startPostgres(options);
  await first.ensureDatabase("tapedeck");
  await first.ensureDatabase("tapedeck");
  await query(first.url("tapedeck"), "create table kept as select 42 as n");
  expect(await first.kill()).toEqual({ code: null, signal: "SIGKILL" });
  // Postgres itself ignores such a number only if its process belongs to another user or is its parent.
  const somebody = new Client(inject("postgres"));
  await somebody.connect();
  const { rows } = await somebody.query<{ pid: number }>("select pg_backend_pid() as pid");
  const pidFile = join(dataDir, "postmaster.pid");
  await writeFile(pidFile, (await readFile(pidFile, "utf8")).replace(/^\d+/, String(rows[0]?.pid)));

  await using second = await startPostgres(options);
  expect(await query(second.url("tapedeck"), "select n from kept")).toEqual([{ n: 42 }]);
  expect(await query(second.url("tapedeck"), "show fsync")).toEqual([{ fsync: "on" }]);
  await somebody.end();
});

it("nobody gets in without the password", async () => {
  await using server = await startPostgres({ dataDir: await folder(), port: 0, password: "right", fsync: false });
  const url = new URL(server.url("postgres"));
  url.password = "wrong";
  await expect(query(url.href, "select 1")).rejects.toThrow(/password authentication failed/);
});

it("another password than at the first start is taken over", async () => {
  const dataDir = await folder();
  await (await startPostgres({ dataDir, port: 0, password: "one", fsync: false })).stop();
  await using server = await startPostgres({ dataDir, port: 0, password: "other", fsync: false });
  expect(await query(server.url("postgres"), "select 1 as n")).toEqual([{ n: 1 }]);
});

it("a server that is not persistent removes its data when it stops", async () => {
  const dataDir = await folder();
  const server = await startPostgres({ dataDir, port: 0, persistent: false, fsync: false });
  expect(existsSync(dataDir)).toBe(true);
  await server.stop();
  expect(existsSync(dataDir)).toBe(false);
});

it("a taken port is named, and a second server on the same data refused or allowed to take over", async () => {
  const dataDir = await folder();
  await using server = await startPostgres({ dataDir, port: 0, fsync: false });
  const elsewhere = startPostgres({ dataDir: await folder(), port: server.port, fsync: false });
  await expect(elsewhere).rejects.toThrow(LocalServerError);
  await expect(elsewhere).rejects.toThrow(`port ${server.port} on 127.0.0.1 is taken, so Postgres can't listen there`);
  await expect(startPostgres({ dataDir, port: 0 })).rejects.toThrow(
    `a Postgres (process ${server.pid}) already runs on ${dataDir}`,
  );
  await using next = await startPostgres({ dataDir, port: server.port, fsync: false, takeOver: true });
  await server.exited;
  expect(next.port).toBe(server.port);
});

it("a folder that has lost+found keeps it, and the data are made in it once", async () => {
  const dataDir = await folder();
  await mkdir(join(dataDir, "lost+found"), { recursive: true });
  await writeFile(join(dataDir, "core"), "");
  const first = await startPostgres({ dataDir, port: 0, fsync: false });
  await query(first.url("postgres"), "create table kept as select 42 as n");
  await expect(startPostgres({ dataDir, port: 0 })).rejects.toThrow(/already runs on/);
  await first.stop();
  // What comes later to an existing one has no effect.
  await writeFile(join(dataDir, "notes.txt"), "");
  await using second = await startPostgres({ dataDir, port: 0, fsync: false });
  expect(await query(second.url("postgres"), "select n from kept")).toEqual([{ n: 42 }]);
  expect(existsSync(join(dataDir, "lost+found"))).toBe(true);
});

const mayMount = spawnSync("unshare", ["--mount", "true"]).status === 0;

it.skipIf(!mayMount).each(["tmpfs", "bind"])("an empty mount point can be its folder: %s", async (how) => {
  const top = await temporaryFolder();
  await chmod(top, 0o755);
  const dataDir = join(top, "data");
  await mkdir(dataDir);
  await mkdir(join(top, "disk"));
  const mount = how === "bind" ? `mount --bind "${top}/disk" "${dataDir}"` : `mount -t tmpfs none "${dataDir}"`;
  const program = `
    const { startPostgres } = await import(${JSON.stringify(new URL("./postgres.ts", import.meta.url).href)});
    for (let start = 0; start < 2; start++) {
      const server = await startPostgres({ dataDir: ${JSON.stringify(dataDir)}, port: 0, fsync: false });
      await server.stop();
    }
    console.log("started twice");`;
  const words = ["--mount", "sh", "-c", `${mount} && exec "$@"`, "sh"];
  const ran = spawnSync("unshare", [...words, process.execPath, "--input-type=module", "-e", program]);
  expect([ran.stdout.toString(), ran.stderr.toString()]).toEqual(["started twice\n", ""]);
});

it("a data directory of something else or of another version is refused", async () => {
  const dataDir = await folder();
  await mkdir(dataDir);
  await writeFile(join(dataDir, "thesis.tex"), "");
  await expect(startPostgres({ dataDir, port: 0 })).rejects.toThrow(/holds something else \(thesis\.tex\)/);
  await writeFile(join(dataDir, "PG_VERSION"), "13\n");
  await expect(startPostgres({ dataDir, port: 0 })).rejects.toThrow(
    /was created by Postgres 13, and this is Postgres \d+/,
  );
});
