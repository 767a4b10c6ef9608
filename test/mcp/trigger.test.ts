import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { mcpClient } from "./mcp-client.ts";

const allowed = { "tapedeck-allow-trigger": "true" };
const cleanup = new AsyncDisposableStack();
let stack: Stack;
let fake: FakeSkaffold;
let tokens: TokenStack;
beforeAll(async () => {
  const recording = loadRecording(recordingFolder("05-control-api-auto-off"));
  fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(await startStack({ skaffold: [{ developer: "alice", project: "shop", address: fake.address }] }));
  tokens = cleanup.use(await startTokenStack());
  await fake.playUntil({ v1: 20 });
  await stack.drained(fake);
  await stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

it("a build, a sync and a deploy reach Skaffold, and the answer says how to wait for them", async () => {
  await using mcp = await mcpClient(stack.http, allowed, { mode: "auto" });
  for (const action of ["build", "sync", "deploy"]) {
    const text = await mcp.ask("trigger", { source: "alice/shop", action });
    const after = /wait_for_loop with after (\S+) to/.exec(text)?.[1];
    const recorded = await mcp.ask("search_events", { kinds: ["control.*"], after });
    expect(recorded).toMatch(/control\.requested.*control\.accepted/s);
  }
  const calls = fake.calls.map(({ method, request }) => [method, UserIntentRequest.decode(request).intent]);
  const none = { build: false, sync: false, deploy: false, devloop: false };
  expect(calls).toMatchObject(
    ["build", "sync", "deploy"].map((action) => ["/proto.SkaffoldService/Execute", { ...none, [action]: true }]),
  );
});

it("there is no trigger without the flag, whatever the token may", async () => {
  await using mcp = await mcpClient(stack.http, {}, { mode: "auto" });
  expect(await mcp.tools()).not.toContain("trigger");
  await expect(mcp.ask("trigger", { action: "build" })).rejects.toThrow();
});

it("there is no trigger for a token that may not control, whatever its flag", async () => {
  const { text: viewer } = await tokens.token("acme", ["viewer"]);
  await using reading = await mcpClient(tokens.on.stack.http, { ...bearing(viewer), ...allowed }, { mode: "auto" });
  expect(await reading.tools()).not.toContain("trigger");
  await expect(reading.ask("trigger", { action: "build" })).rejects.toThrow();
  const { text: controller } = await tokens.token("acme", ["controller"]);
  const headers = { ...bearing(controller), ...allowed };
  await using controlling = await mcpClient(tokens.on.stack.http, headers, { mode: "auto" });
  expect(await controlling.tools()).toContain("trigger");
  expect(await controlling.call("trigger", { action: "build" })).toMatchObject({
    isError: true,
    text: expect.stringContaining("unknown_source"),
  });
});
