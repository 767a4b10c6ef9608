import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";

import { identityOf, thisProcess } from "./process-identity.ts";
import { takeTapId } from "./tap-id.ts";

const source = "default/alice/shop/skaffold";
const fileOf = (folder: string) => join(folder, "default.alice.shop.skaffold.tap.json");
const removed = () => spawnSync("true").pid;

it("a tap takes over the id of a process that is gone, and not that of a living one", async () => {
  await using tidy = await temporaryFolder();
  writeFileSync(fileOf(tidy.folder), JSON.stringify({ tap: "before", pid: removed() }));
  using first = takeTapId(tidy.folder, source);
  expect(first.tap).toBe("before");
  using second = takeTapId(tidy.folder, source);
  expect(second.tap).not.toBe("before");
  expect(JSON.parse(readFileSync(fileOf(tidy.folder), "utf8"))).toEqual({ tap: "before", ...thisProcess() });
});

it("a tap does not take over an id that another one uses meanwhile", async () => {
  await using tidy = await temporaryFolder();
  writeFileSync(fileOf(tidy.folder), JSON.stringify({ tap: "before", pid: removed() }));
  using id = takeTapId(tidy.folder, source, (tap) => tap !== "before");
  expect(id.tap).not.toBe("before");
  expect(JSON.parse(readFileSync(fileOf(tidy.folder), "utf8"))).toEqual({ tap: id.tap, ...thisProcess() });
});

it("a tap takes over the id of a process that had its number, as in a container", async () => {
  await using tidy = await temporaryFolder();
  writeFileSync(fileOf(tidy.folder), JSON.stringify({ tap: "before", pid: process.pid }));
  using id = takeTapId(tidy.folder, source);
  expect(id.tap).toBe("before");
});

it("a tap takes over the id of a process whose number another one has now", async () => {
  await using tidy = await temporaryFolder();
  const living = identityOf(process.ppid);
  writeFileSync(fileOf(tidy.folder), JSON.stringify({ tap: "before", ...living, started: "long ago" }));
  using id = takeTapId(tidy.folder, source);
  expect(id.tap).toBe("before");
  writeFileSync(fileOf(tidy.folder), JSON.stringify({ tap: "before", ...living }));
  using other = takeTapId(tidy.folder, source);
  expect(other.tap).not.toBe("before");
});

it("an id is there as a whole or not at all, and half of one is in nobody's way", async () => {
  await using tidy = await temporaryFolder();
  writeFileSync(fileOf(tidy.folder), '{"tap":"bef');
  {
    using id = takeTapId(tidy.folder, source);
    expect(JSON.parse(readFileSync(fileOf(tidy.folder), "utf8"))).toEqual({ tap: id.tap, ...thisProcess() });
    expect(readdirSync(tidy.folder)).toHaveLength(1);
  }
  expect(readdirSync(tidy.folder)).toEqual([]);
});
