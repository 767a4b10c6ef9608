import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { startStack } from "../stack/stack.ts";
import { type McpClient, mcpClient } from "./mcp-client.ts";

const recordings = {
  p03: "03-first-build-fails-process-exits",
  p04: "04-deploy-failure-then-recovery",
  p04b: "04b-first-deploy-fails-process-exits",
  p10: "10-status-check-port-forward-sync-app-logs",
  p10b: "10b-first-status-check-times-out",
  p22: "22-skaffold-build-fails",
  p23: "23-skaffold-run-deploy-fails",
  p24: "24-dev-concurrent-builds",
  p25: "25-dev-test-fails",
  p26: "26-dev-sync-fails",
  p27: "27-dev-build-fails-beside-others",
  p28: "28-skaffold-verify-fails",
  p29: "29-skaffold-exec-fails",
  p30: "30-skaffold-verify-image-not-pulled",
  p31: "31-dev-compilers-and-tests-fail",
};

export type FailuresHarness = AsyncDisposable & {
  readonly mcp: McpClient;
  /** Each is a project of alice's. */
  readonly projects: readonly string[];
};

/** A stack with failures that a real Skaffold reported. */
export async function startFailuresHarness(): Promise<FailuresHarness> {
  await using starting = new AsyncDisposableStack();
  const fakes = await Promise.all(
    Object.values(recordings).map(async (name) =>
      starting.use(await startFakeSkaffold({ recording: loadRecording(recordingFolder(name)) })),
    ),
  );
  const projects = Object.keys(recordings);
  const skaffold = projects.map((project, at) => ({ developer: "alice", project, address: fakes[at]?.address ?? "" }));
  const stack = starting.use(await startStack({ skaffold }));
  await Promise.all(fakes.map((fake) => fake.play()));
  await stack.drained(...fakes);
  await stack.caughtUp();
  const mcp = starting.use(await mcpClient(stack.http, {}, { mode: "auto" }));
  const cleanup = starting.move();
  return { mcp, projects, [Symbol.asyncDispose]: () => cleanup.disposeAsync() };
}
