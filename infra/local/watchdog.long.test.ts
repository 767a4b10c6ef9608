import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { startNatsServer } from "./nats-server.ts";
import { startPostgres } from "./postgres.ts";

type Started = { readonly nats: number; readonly postgres: number; readonly url: string };

/** A process that starts both servers on folders in there, and then `more`. */
async function owner(folder: string, more = "") {
  const own = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const nats = { binary: inject("natsServer"), dataDir: join(folder, "nats"), port: 0 };
  const postgres = { dataDir: join(folder, "postgres"), port: 0 };
  const program = `
    const { startNatsServer } = await import(${own("./nats-server.ts")});
    const { startPostgres } = await import(${own("./postgres.ts")});
    const nats = await startNatsServer(${JSON.stringify(nats)});
    const postgres = await startPostgres(${JSON.stringify(postgres)});
    console.log(JSON.stringify({ nats: nats.pid, postgres: postgres.pid, url: postgres.url("postgres") }));
    ${more}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { child, started: JSON.parse(line) as Started };
}

/** Only a broken test waits so long. */
const patient = { timeout: 100_000, interval: 20 };

async function exited(pid: number): Promise<void> {
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), patient);
}

it("servers end cleanly when whoever started them is killed, and keep what they have", async () => {
  const folder = await temporaryFolder();
  const { child, started } = await owner(folder);
  const client = new Client(started.url);
  client.on("error", () => {}); // a fast shutdown does not wait for us
  await client.connect();
  await client.query("create table kept as select 42 as n");
  child.kill("SIGKILL");
  await Promise.all([exited(started.nats), exited(started.postgres)]);
  expect(await readFile(join(folder, "postgres.log"), "utf8")).toMatch(
    /received fast shutdown request[\s\S]*database system is shut down/,
  );
  expect(await readFile(join(folder, "nats", "nats-server.log"), "utf8")).toContain("Server Exiting");

  await using again = await startPostgres({ dataDir: join(folder, "postgres"), port: 0 });
  const reader = new Client(again.url("postgres"));
  await reader.connect();
  expect((await reader.query("select n from kept")).rows).toEqual([{ n: 42 }]);
  await reader.end();
  expect(await readFile(join(folder, "postgres.log"), "utf8")).not.toContain("not properly shut down");
});

it("a start on the same data right after a kill waits for the processes that end", async () => {
  const folder = await temporaryFolder();
  const { child, started } = await owner(folder);
  const client = new Client(started.url);
  client.on("error", () => {});
  await client.connect();
  await client.query("create table kept as select 42 as n");
  child.kill("SIGKILL");
  const options = { binary: inject("natsServer"), port: 0, takeOver: true };
  await using nats = await startNatsServer({ ...options, dataDir: join(folder, "nats") });
  await using postgres = await startPostgres({ port: 0, dataDir: join(folder, "postgres"), takeOver: true });
  expect(nats.pid).not.toBe(started.nats);
  const reader = new Client(postgres.url("postgres"));
  await reader.connect();
  expect((await reader.query("select n from kept")).rows).toEqual([{ n: 42 }]);
  await reader.end();
});

it("on Linux the server ends also where there is no `ps`", async () => {
  const needed = existsSync("/proc/self/cmdline") ? "tr" : "ps";
  const folder = await temporaryFolder();
  const places = (process.env.PATH ?? "").split(delimiter).map((place) => join(place, needed));
  await symlink(places.find((place) => existsSync(place)) ?? needed, join(folder, needed));
  const watched = spawn(process.execPath, ["-e", "setInterval(() => {}, 1_000)", folder]);
  const end = once(watched, "exit");
  onTestFinished(() => void watched.kill("SIGKILL"));
  const { href } = new URL("./watchdog.ts", import.meta.url);
  const program = `
    const { watchOver } = await import(${JSON.stringify(href)});
    watchOver(${JSON.stringify({ pid: watched.pid, stopSignal: "SIGTERM", mark: folder })});
    process.kill(process.pid, "SIGKILL");`;
  spawn(process.execPath, ["--input-type=module", "-e", program], { env: { PATH: folder }, stdio: "inherit" });
  expect(await end).toEqual([null, "SIGTERM"]);
});

it("a process that stops its servers itself is not kept alive, and leaves no watchdog", async () => {
  const folder = await temporaryFolder();
  const { child } = await owner(folder, "await nats.stop(); await postgres.stop();");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  const hasExited = async () => {
    const ps = spawn("ps", ["-ww", "-eo", "args="]);
    let processes = "";
    for await (const chunk of ps.stdout) processes += chunk;
    expect(processes.split("\n").filter((line) => line.includes(folder))).toEqual([]);
  };
  await vi.waitFor(hasExited, patient);
});
