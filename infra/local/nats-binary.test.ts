import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { create } from "tar";
import { afterEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { findNatsServer, isNewEnough } from "./nats-binary.ts";
import { type FetchNats, fetchNatsRelease, releaseName } from "./nats-release.ts";

const log = () => {};

/** A program that prints a version as nats-server does. */
const program = async (path: string, version: string): Promise<string> => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
  return path;
};
const giving =
  (version: string) =>
  ({ folder }: FetchNats) =>
    program(join(folder, "nats-server"), version);
const failing = (why: string) => () => Promise.reject(new Error(why));
const onPath = (dir: string) => vi.stubEnv("PATH", `${dir}:/usr/bin:/bin`);

afterEach(() => {
  vi.unstubAllEnvs();
});

it.each([
  ["2.11.9", false],
  ["2.12.0", true],
  ["2.15.1", true],
  ["3.0.0", true],
  ["1.99.0", false],
])("%s is new enough: %s", (version, expected) => {
  expect(isNewEnough(version)).toBe(expected);
});

it("the one on PATH is taken if it is new enough", async () => {
  const dir = await temporaryFolder();
  await program(join(dir, "nats-server"), "2.12.1");
  onPath(dir);
  expect(await findNatsServer({ bin: await temporaryFolder(), log, sources: [] })).toBe("nats-server");
});

it("one that was fetched before is taken rather than an old one on PATH", async () => {
  const [dir, bin] = [await temporaryFolder(), await temporaryFolder()];
  await program(join(dir, "nats-server"), "2.10.0");
  const kept = await program(join(bin, "nats-server"), "2.15.1");
  onPath(dir);
  expect(await findNatsServer({ bin, log, sources: [] })).toBe(kept);
});

it("two that fetch at once both get a whole one, and no rest stays", async () => {
  onPath("/nowhere");
  const bin = await temporaryFolder();
  const sources = [failing("github.com can't be reached"), giving("2.15.1")];
  const [one, other] = await Promise.all([
    findNatsServer({ bin, log, sources }),
    findNatsServer({ bin, log, sources }),
  ]);
  expect(one).toBe(other);
  expect(await readdir(bin)).toEqual(["nats-server"]);
});

it("an old one that was fetched is not kept", async () => {
  onPath("/nowhere");
  await expect(findNatsServer({ bin: await temporaryFolder(), log, sources: [giving("2.9.0")] })).rejects.toThrow(
    /2\.9\.0/,
  );
});

it("when all fails one sentence says what to install", async () => {
  const dir = await temporaryFolder();
  await program(join(dir, "nats-server"), "2.10.0");
  onPath(dir);
  const sources = [failing("github.com can't be reached"), failing("no apt on this machine")];
  await expect(findNatsServer({ bin: await temporaryFolder(), log, sources })).rejects.toThrow(
    "nats-server 2.12 or newer is needed (the one on PATH is 2.10.0) and could not be fetched " +
      "(github.com can't be reached; no apt on this machine): install it (macOS: brew install nats-server;",
  );
});

it("a release is unpacked if it is what SHA256SUMS says, and refused if not", async () => {
  const dir = await temporaryFolder();
  const archive = `${releaseName}.tar.gz`;
  await program(join(dir, releaseName, "nats-server"), "2.15.1");
  await create({ file: join(dir, archive), cwd: dir, gzip: true }, [releaseName]);
  const bytes = await readFile(join(dir, archive));
  const right = createHash("sha256").update(bytes).digest("hex");
  let sums = `${"a".repeat(64)}  something-else.zip\n${right}  ${archive}\n`;
  const server = createServer((request, response) => {
    response.end(request.url?.endsWith("SHA256SUMS") ? sums : bytes);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const releases = `http://127.0.0.1:${(server.address() as AddressInfo).port}/download`;
  const fetchRelease = async () => fetchNatsRelease({ folder: await temporaryFolder(), log, releases });

  expect(await readFile(await fetchRelease(), "utf8")).toContain("v2.15.1");
  sums = `${"0".repeat(64)}  ${archive}\n`;
  await expect(fetchRelease()).rejects.toThrow(/is not what SHA256SUMS says/);
  sums = `${right}  something-else.zip\n`;
  await expect(fetchRelease()).rejects.toThrow(/does not name/);
  server.closeAllConnections();
  server.close();
  await once(server, "close");
  await expect(fetchRelease()).rejects.toThrow("127.0.0.1 can't be reached");
});
