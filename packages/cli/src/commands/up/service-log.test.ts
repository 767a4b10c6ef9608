import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openLogFile, showLogs } from "./service-log.ts";

const line = (level: number, msg: string) => `${JSON.stringify({ level, time: 0, msg })}\n`;

describe("showLogs", () => {
  const folder = mkdtempSync(join(tmpdir(), "tapedeck-service-log-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("shows the warnings of a start, and nothing that is written while all stops", async () => {
    const path = join(folder, "ingest.log");
    appendFileSync(path, line(40, "of an earlier start"));
    const file = await openLogFile(path);
    const output: string[] = [];
    const over = new AbortController();
    const shown = showLogs([file], false, over.signal, (text) => output.push(text));
    appendFileSync(path, line(30, "ready") + line(40, "the disk is full"));
    await until(() => output.length > 0, { message: "the warning" });
    appendFileSync(path, line(40, "NATS is away"));
    over.abort();
    await shown;
    expect(output).toEqual([expect.stringContaining("ingest: the disk is full")]);
  });

  it("reads a file when something was written to it", async () => {
    const [quiet, busy] = [join(folder, "quiet.log"), join(folder, "busy.log")];
    const files = await Promise.all([quiet, busy].map(openLogFile));
    await using probe = await open(quiet);
    const reads = vi.spyOn(Object.getPrototypeOf(probe) as FileHandle, "stat");
    onTestFinished(() => reads.mockRestore());
    const output: string[] = [];
    const over = new AbortController();
    const shown = showLogs(files, false, over.signal, (text) => output.push(text));
    for (let lines = 1; lines <= 4; lines++) {
      appendFileSync(busy, line(40, `line ${lines}`));
      await until(() => output.length === lines, { message: `line ${lines}` });
    }
    const counts = Map.groupBy(reads.mock.contexts as readonly FileHandle[], ({ fd }) => fd);
    expect([...counts.values()].map(({ length }) => length).toSorted((a, b) => a - b)[0]).toBe(1);
    over.abort();
    await shown;
  });
});
