import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { LocalServerError } from "./local-server-error.ts";
import { startNatsServer } from "./nats-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly natsServer: string;
  }
}

const binary = inject("natsServer");
/** What the server says first: its INFO line. */
const greeting = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      resolve(data.toString());
    });
  });

it("the server accepts connections when it is said to", async () => {
  const dataDir = join(await temporaryFolder(), "a folder with spaces");
  await using server = await startNatsServer({ binary, dataDir, port: 0, user: "tapedeck", password: 'p"$w @/' });
  const info = await greeting(server.port);
  expect(info).toContain('"jetstream":true');
  expect(info).toContain('"auth_required":true');
  expect(info).toContain('"max_payload":8388608');
  expect(new URL(server.url).port).toBe(String(server.port));
  expect(decodeURIComponent(new URL(server.url).password)).toBe('p"$w @/');
  const config = join(dataDir, "nats-server.conf");
  expect((await stat(config)).mode & 0o777).toBe(0o600);
  expect(await readFile(config, "utf8")).toContain("sync_interval: always");
});

it("stop ends it cleanly, kill does not ask", async () => {
  const dataDir = await temporaryFolder();
  const first = await startNatsServer({ binary, dataDir, port: 0 });
  await first.stop();
  expect((await first.exited).signal).not.toBe("SIGKILL");

  const second = await startNatsServer({ binary, dataDir, port: first.port });
  expect(second.port).toBe(first.port);
  expect(await second.kill()).toEqual({ code: null, signal: "SIGKILL" });
  await expect(greeting(first.port)).rejects.toThrow(/ECONNREFUSED/);
});

it("a taken port is named", async () => {
  await using server = await startNatsServer({ binary, dataDir: await temporaryFolder(), port: 0 });
  const second = startNatsServer({ binary, dataDir: await temporaryFolder(), port: server.port });
  await expect(second).rejects.toThrow(LocalServerError);
  await expect(second).rejects.toThrow(`port ${server.port} on 127.0.0.1 is taken, so NATS can't listen there`);
});

it("a second server on the same data is refused, or takes over if it may", async () => {
  const dataDir = await temporaryFolder();
  await using left = await startNatsServer({ binary, dataDir, port: 0 });
  await expect(startNatsServer({ binary, dataDir, port: 0 })).rejects.toThrow(
    `a nats-server (process ${left.pid}) already runs on ${dataDir}`,
  );
  await using next = await startNatsServer({ binary, dataDir, port: left.port, takeOver: true });
  await left.exited;
  expect(next.pid).not.toBe(left.pid);
});

it("an old server is refused", async () => {
  const old = join(await temporaryFolder(), "nats-server");
  await writeFile(old, '#!/bin/sh\necho "nats-server: v2.11.4"\n');
  await chmod(old, 0o755);
  const starting = startNatsServer({ binary: old, dataDir: await temporaryFolder(), port: 0 });
  await expect(starting).rejects.toThrow(`nats-server 2.11.4 (${old}) is too old: install 2.12 or newer.`);
});

it("files of the file system, of editors and desktops keep no server from its folder, at the first start and later", async () => {
  const dataDir = await temporaryFolder();
  for (const name of ["lost+found", ".snapshot"]) await mkdir(join(dataDir, name));
  for (const name of ["core", "core.4711", ".DS_Store", ".nats-server.conf.swp", "nats-server.conf~"])
    await writeFile(join(dataDir, name), "");
  await (await startNatsServer({ binary, dataDir, port: 0 })).stop();
  // It is known by its store now.
  await writeFile(join(dataDir, "notes.txt"), "");
  await (await startNatsServer({ binary, dataDir, port: 0 })).stop();
});

it("a data directory of something else is refused", async () => {
  const dataDir = await temporaryFolder();
  await writeFile(join(dataDir, "thesis.tex"), "");
  await expect(startNatsServer({ binary, dataDir, port: 0 })).rejects.toThrow(/holds something else \(thesis\.tex\)/);
  await expect(startNatsServer({ binary, dataDir: join(dataDir, "thesis.tex"), port: 0 })).rejects.toThrow(
    /can't be the data directory of NATS/,
  );
});
