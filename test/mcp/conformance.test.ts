import { execFile } from "node:child_process";
import { glob, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ApiHarness, startApiHarness } from "../stack/api-harness.ts";

let harness: ApiHarness;
beforeAll(async () => {
  harness = await startApiHarness();
});
afterAll(() => harness[Symbol.asyncDispose]());

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string };

/**
 * What fails because it is not offered: prompts, resources, completion, logging, questions to the user, parameters in headers, and the
 * tools of the suite's own example server (`test_…`), with which it tests what tools may do.
 */
const notOffered = [
  /Method not found/,
  /[Tt]ool "?'?\w*(test_|json_schema)\w*'?"? (is )?(not found|not listed)/,
  /Not testable: server (does not list the diagnostic tool|exposes no tool with x-mcp-header)/,
  /InputRequiredResult/,
];

it.each(["2026-07-28", "2025-11-25"])("the conformance suite fails nothing of %s that is offered", async (revision) => {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  const program = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");
  const url = `http://${harness.on.stack.http}/mcp`;
  const args = [program, "server", "--url", url, "--suite", "all", "--spec-version", revision, "-o", folder];
  // It ends with 1 if anything fails.
  await new Promise((resolve) => execFile(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 26 }, resolve));
  const passed: string[] = [];
  const failed: string[] = [];
  for await (const path of glob("**/checks.json", { cwd: folder })) {
    const checks = JSON.parse(await readFile(join(folder, path), "utf8")) as readonly Check[];
    for (const { id, status, errorMessage = "" } of checks) {
      if (status === "SUCCESS") passed.push(id);
      if (status === "FAILURE" && !notOffered.some((reason) => reason.test(errorMessage)))
        failed.push(`${path}: ${id}: ${errorMessage}`);
    }
  }
  await rm(folder, { recursive: true });
  expect(failed).toEqual([]);
  expect(passed.length).toBeGreaterThan(revision === "2026-07-28" ? 80 : 30);
  const own = { "2026-07-28": ["sep-2575-server-implements-discover"], "2025-11-25": ["server-initialize"] };
  expect(passed).toEqual(expect.arrayContaining(own[revision as keyof typeof own]));
});
