import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll } from "vitest";
import { type Stack, startStack } from "./stack.ts";

/** A stack that records alice/shop, whose Skaffold the test plays, and commands as people and scripts type them. */
export function recordedShop() {
  const folder = mkdtempSync(join(tmpdir(), "commands-"));
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let fake: FakeSkaffold;

  beforeAll(async () => {
    const recording = loadRecording(recordingFolder("10-status-check-port-forward-sync-app-logs"));
    fake = cleanup.use(await startFakeSkaffold({ recording }));
    const skaffold = [{ developer: "alice", project: "shop", address: fake.address }];
    stack = cleanup.use(await startStack({ skaffold }));
  });
  afterAll(async () => {
    await cleanup.disposeAsync();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = (args: readonly string[], url = `http://${stack.http}`) =>
    startCli(args, {
      cwd: folder,
      env: {
        TAPEDECK_URL: url,
        TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1),
        TAPEDECK_DATA: join(folder, "data"),
        XDG_STATE_HOME: folder,
      },
    });

  async function tapedeck(...args: string[]) {
    await using cli = start(args);
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  }
  return {
    start,
    tapedeck,
    get stack() {
      return stack;
    },
    get fake() {
      return fake;
    },
  };
}
