import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { expect, it } from "vitest";
import { startStack } from "./stack.ts";

it("`tapedeck watch` tells of loops as they run, fail and are good again, and ends with Ctrl-C", async () => {
  await using cleanup = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "watch-"));
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  const recording = loadRecording(recordingFolder("04-deploy-failure-then-recovery"));
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const skaffold = [{ developer: "alice", project: "shop", address: fake.address }];
  const stack = cleanup.use(await startStack({ skaffold }));
  const env = { TAPEDECK_URL: `http://${stack.http}` };
  const cli = cleanup.use(startCli(["watch", "-s", "alice/shop"], { cwd, env }));
  await until(() => cli.stdout().includes("alice/shop"), { message: "the source to be shown" });
  await fake.play();
  const words = () => [...cli.stdout().matchAll(/alice\/shop {2}(\w+)/g)].map(([, word]) => word);
  // The second loop fails, the third is good, and the fourth fails.
  await until(() => words().lastIndexOf("failed") > words().lastIndexOf("ok") && words().includes("ok"), {
    message: "the last loop to have failed",
  });
  expect(words()).toContain("running");
  expect(cli.stdout()).toMatch(/failed {2}deploy\S*: \S/);
  process.kill(cli.child.pid ?? 0, "SIGINT");
  expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);

  const nobody = cleanup.use(startCli(["watch"], { cwd, env: { TAPEDECK_URL: "http://127.0.0.1:1" } }));
  expect([await nobody.ended, nobody.stderr()]).toEqual([1, expect.stringContaining("no Tapedeck server answers")]);
});
