import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type BadFolder, badStarts, testDataFolders } from "./testing/bad-starts.ts";

const starts = badStarts();
const { failedUp } = starts;

const folders: readonly BadFolder[] = [
  ["a file", "data", (folder: string) => writeFileSync(join(folder, "data"), ""), /is a file and can't be the data/],
  [
    "a Postgres of another version",
    "data",
    (folder: string) => {
      mkdirSync(join(folder, "data", "postgres"), { recursive: true });
      writeFileSync(join(folder, "data", "postgres", "PG_VERSION"), "9\n");
    },
    /was created by Postgres 9, and this is Postgres \d+/,
  ],
  ["a place where there can be no folders", "/proc/tapedeck", () => {}, /\/proc\/tapedeck can't be the data folder/],
];

describe("a start that can't be", () => {
  testDataFolders(starts, folders);

  it.each([
    ["--vagrant", "127.0.0.1:9701"],
    ["--rkt", "127.0.0.1:15441"],
  ])("refuses what is no host and port: %s", async (flag, example) => {
    const { said } = await failedUp([flag, "50051"]);
    expect(said).toContain(`Expected HOST:PORT, such as ${example}.`);
  });
});
