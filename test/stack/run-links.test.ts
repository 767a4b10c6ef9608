import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCli } from "tapedeck/testing/cli";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

const folder = mkdtempSync(join(tmpdir(), "run-links-"));
const path = installSkaffold(join(folder, "bin"));
const cleanup = new AsyncDisposableStack();
let stack: Stack;

beforeAll(async () => {
  stack = cleanup.use(await startStack({}));
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

// Tried again, because the loop's link is omitted when the answer takes more than half a second: on a busy machine it may.
it.each([
  ["04b-first-deploy-fails-process-exits", 1],
  ["12-skaffold-build-one-shot", 0],
])(
  "a command leads to its session on the page, and to its last failed loop: %s",
  { retry: 3 },
  async (recording, failures) => {
    const cwd = mkdtempSync(join(folder, "laptop-"));
    const env = {
      ...{ PATH: path, TAPEDECK_SPILL: join(cwd, "spill"), TAPEDECK_DEVELOPER: "alice" },
      ...{ TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1) ?? "" },
      ...{ STAND_IN_RECORDING: recordingFolder(recording), STAND_IN_NOW: "1" },
    };
    const cli = startCli(["run", "--project", `p${failures}`, "--", "skaffold", "build"], { cwd, env });
    expect(await cli.ended).toBe(0);
    await stack.caughtUp();
    const get = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body).items;
    const [{ session }] = await get(`sessions?project=p${failures}`);
    const failed = await get(`operations?session=${session}&kind=loop&outcome=failed&limit=1`);
    expect(failed).toHaveLength(failures);
    const where = `as alice/p${failures}, session ${session}: http://${stack.http}/sessions/${session}`;
    expect(cli.stderr().split("\n")).toEqual([
      `tapedeck: recording ${where}`,
      `tapedeck: recorded ${where}`,
      ...failed.map(
        ({ runner, loop }: { runner: number; loop: number }) =>
          `tapedeck: loop ${loop} failed: http://${stack.http}/loops/${session}.${runner}.${loop}`,
      ),
      "",
    ]);
  },
);
