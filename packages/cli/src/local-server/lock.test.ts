import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { lockUp, runningUp } from "./lock.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-lock-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const leftFile = "up-01KE3M9Z6Q4W8T2V5X7Y9A1B3C.json";
const folder = () => mkdtempSync(join(root, "data-"));

describe("the lock of `up`", () => {
  it("lets one in, until it leaves", async () => {
    const data = folder();
    const lock = await lockUp(data, "record", data);
    await lock.publish({ mode: "record", storeDir: data, addresses: { http: "127.0.0.1:7052" }, sources: [] });
    expect((await runningUp(data))?.addresses).toEqual({ http: "127.0.0.1:7052" });
    await expect(lockUp(data, "record", data)).rejects.toThrow(/^Tapedeck already runs here \(process \d+, http:/);
    await lock[Symbol.asyncDispose]();
    expect(await runningUp(data)).toBeUndefined();
    await using again = await lockUp(data, "demo", data);
    expect(again.wasLeft).toBe(false);
    expect(readdirSync(data)).toHaveLength(1);
  });

  it("lets one in of many that come at once over what a killed one left", async () => {
    const data = folder();
    const dead = spawn("true", { stdio: "ignore" });
    await once(dead, "exit");
    const left = { pid: dead.pid, command: "tapedeck up", mode: "demo", storeDir: data, addresses: {} };
    writeFileSync(join(data, leftFile), JSON.stringify(left));
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => lockUp(data, "record", data)));
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(readdirSync(data)).toHaveLength(1);
  });

  it("knows that another program has the number of a killed one", async () => {
    const data = folder();
    const other = { pid: process.pid, command: "something else", mode: "record", storeDir: data, addresses: {} };
    writeFileSync(join(data, leftFile), JSON.stringify(other));
    expect(await runningUp(data)).toBeUndefined();
    await using lock = await lockUp(data, "record", data);
    expect(lock.wasLeft).toBe(true);
  });

  it("takes a damaged file for one that was left", async () => {
    const data = folder();
    writeFileSync(join(data, leftFile), '{"pid": 1');
    await using lock = await lockUp(data, "record", data);
    expect(lock.wasLeft).toBe(true);
  });
});
