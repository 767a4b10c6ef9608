import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { newBackup } from "../../maintain/backup-folder.ts";
import { startCli } from "../../testing/cli.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-failed-backup-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A frame of the gateway's /api/v1/backup. */
function frame(letter: string, content: string): Buffer {
  const head = Buffer.alloc(5);
  head.write(letter, "latin1");
  head.writeUInt32BE(Buffer.byteLength(content), 1);
  return Buffer.concat([head, Buffer.from(content)]);
}

/** The workspace `acme` with the first piece of its log. */
const piece = Buffer.concat([frame("w", JSON.stringify({ workspace: "acme" })), frame("p", "a piece")]);

const refuses = (response: ServerResponse) => response.writeHead(403).end('{"error":{"message":"not for you"}}');
const stalls = (response: ServerResponse) => void response.write(piece);
const breaksOff = (response: ServerResponse) => response.end(piece);
const fails = (response: ServerResponse) =>
  response.end(Buffer.concat([piece, frame("e", '{"message":"NATS aborted the snapshot"}')]));

/** What answers as a gateway would. */
async function startGateway(answer: (response: ServerResponse) => void) {
  const server = createServer((_, response) => answer(response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const backUpFrom = (url: string, folder: string) =>
  startCli(["backup", folder, "--url", url], { cwd: root, env: { TAPEDECK_TOKEN: "tdk_x" } });

it.each([
  ["refused", refuses, "not for you"],
  ["broken off", breaksOff, "the connection was lost"],
  ["ended by an error", fails, "NATS aborted the snapshot"],
])("a backup that is %s leaves nothing in a folder that was there", async (_, answer, reported) => {
  const folder = mkdtempSync(join(root, "there-"));
  await using gateway = await startGateway(answer);
  await using cli = backUpFrom(gateway.url, folder);
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toContain(reported);
  expect(readdirSync(folder)).toEqual([]);
});

it("a backup that is refused removes the folders that it made, and no others", async () => {
  const above = mkdtempSync(join(root, "above-"));
  await using gateway = await startGateway(refuses);
  await using cli = backUpFrom(gateway.url, join(above, "of", "today"));
  expect(await cli.ended).toBe(1);
  expect(readdirSync(above)).toEqual([]);
});

it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("a backup that %s stops leaves nothing", async (signal) => {
  const folder = join(root, signal);
  await using gateway = await startGateway(stalls);
  await using cli = backUpFrom(gateway.url, folder);
  const size = () => statSync(join(folder, "acme", "stream.tar.s2"), { throwIfNoEntry: false })?.size;
  await until(() => (size() ?? 0) > 0, { message: "the first piece" });
  cli.child.kill(signal);
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toContain("tapedeck: stopped: nothing was backed up.\n");
  expect(existsSync(folder)).toBe(false);
});

it("a backup without a Tapedeck to back up leaves nothing", async () => {
  await using cli = startCli(["backup", "local"], { cwd: root });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toContain("no Tapedeck server runs on .tapedeck");
  expect(existsSync(join(root, "local"))).toBe(false);
});

it("files of others there are not touched, nor is the folder that holds them", async () => {
  const full = mkdtempSync(join(root, "full-"));
  writeFileSync(join(full, "stream.tar.s2"), "of another backup");
  await expect(newBackup(full)).rejects.toThrow("is not empty (stream.tar.s2)");
  expect(readdirSync(full)).toEqual(["stream.tar.s2"]);

  const folder = join(root, "made", "deep");
  const beside = join(dirname(folder), "beside");
  {
    await using backup = await newBackup(folder);
    await backup.begin("acme");
    await backup.take(Buffer.from("a piece"));
    mkdirSync(beside);
  }
  expect(readdirSync(dirname(folder))).toEqual(["beside"]);
});
