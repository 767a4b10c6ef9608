import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";

function machine() {
  const cwd = mkdtempSync(join(tmpdir(), "uninstall-"));
  const write = (path: string, bytes: number) => {
    mkdirSync(join(cwd, path, ".."), { recursive: true });
    writeFileSync(join(cwd, path), "x".repeat(bytes));
  };
  const env = { XDG_CACHE_HOME: join(cwd, "cache"), XDG_STATE_HOME: join(cwd, "state") };
  const has = (path: string) => existsSync(join(cwd, path));
  async function uninstall(...args: string[]) {
    await using cli = startCli(["uninstall", ...args], { cwd, env });
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  }
  return { write, has, uninstall };
}

it("removes what Tapedeck made, with its size, and nothing else", async () => {
  const { write, has, uninstall } = machine();
  write(".tapedeck/secrets/key", 24);
  write(".tapedeck/nats/jetstream/1.blk", 2_000);
  write(".tapedeck/thesis.txt", 10);
  write("cache/tapedeck/bin/nats-server", 1_048_576);
  write("cache/other/file", 10);
  const unsure = await uninstall();
  expect(unsure).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^tapedeck: nothing was removed: .* add --yes\.\n$/),
  });
  expect(has(".tapedeck/nats/jetstream/1.blk")).toBe(true);
  const { code, out } = await uninstall("--yes");
  expect([code, out]).toEqual([0, expect.stringMatching(/\/\.tapedeck +2\.0 KiB .*\n.*\/cache\/tapedeck +1\.0 MiB /)]);
  expect(["secrets", "nats", "thesis.txt"].map((name) => has(join(".tapedeck", name)))).toEqual([false, false, true]);
  expect(["cache/tapedeck", "cache/other/file"].map(has)).toEqual([false, true]);
  expect((await uninstall("--yes")).out).toMatch(/^Nothing to remove: /);
});

it("removes nothing of a folder that no Tapedeck has made, nor of recordings that wait", async () => {
  const { write, has, uninstall } = machine();
  write("project/log/mine.txt", 10);
  write("state/tapedeck/spill/01M7XB1CJJ74KGYJT57DM4N80H/x", 10);
  expect((await uninstall("--data", "project", "--yes")).code).toBe(0);
  expect(["project/log/mine.txt", "state/tapedeck/spill/01M7XB1CJJ74KGYJT57DM4N80H/x"].map(has)).toEqual([true, true]);
});
