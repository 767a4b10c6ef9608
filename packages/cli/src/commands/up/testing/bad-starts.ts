import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { startCli } from "../../../testing/cli.ts";

/** Folders for the tests of one file, in which `tapedeck up` can't start. */
export function badStarts() {
  const root = mkdtempSync(join(tmpdir(), "tapedeck-bad-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const newFolder = () => mkdtempSync(join(root, "folder-"));

  /** What it said, and where. */
  async function failedUp(args: readonly string[], env: Record<string, string> = {}, prepare?: (cwd: string) => void) {
    const cwd = newFolder();
    prepare?.(cwd);
    const cli = startCli(["up", ...args], { cwd, env });
    expect(await cli.ended).toBe(1);
    return { said: cli.stderr(), cwd };
  }
  return { newFolder, failedUp };
}

export type BadFolder = readonly [string, string, (folder: string) => void, RegExp];

/** Tests that these are refused as data folders. */
export function testDataFolders({ failedUp }: ReturnType<typeof badStarts>, folders: readonly BadFolder[]): void {
  it.each(folders)("refuses %s as its data folder in one sentence", async (_, data, prepare, sentence) => {
    const env = { TAPEDECK_NATS_PORT: "0", TAPEDECK_POSTGRES_PORT: "0", ...anyServicePorts };
    const { said } = await failedUp(["--no-demo", "--data", data], env, prepare);
    expect(said).toMatch(sentence);
    expect(said.trim().split("\n")).toHaveLength(1);
  });
}

export const anyServicePorts = Object.fromEntries(
  ["GATEWAY_GRPC", "GATEWAY_HTTP", "QUERY_GRPC", "QUERY_HEALTH", "INGEST_GRPC", "INGEST_HEALTH"].map((name) => [
    `TAPEDECK_${name}_PORT`,
    "0",
  ]),
);
