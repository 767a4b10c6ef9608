import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { startCli } from "tapedeck/testing/cli";
import { expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { mcpClient } from "./mcp-client.ts";

// `skaffold dev` and `skaffold run` of one project are one source, of which only the former has loops.

it("a process without loops may be what failed last, between two loops that failed", async () => {
  await using on = await startSeededStack();
  await using mcp = await mcpClient(on.stack.http, {}, { mode: "auto" });
  const alice = scenario(sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" }));
  let written = 0;
  const seed = async () => {
    await on.seed(alice.events.slice(written));
    written = alice.events.length;
  };
  const failingLoop = (id: string) => {
    const dev = alice.session(id);
    dev.started();
    dev.configured();
    dev.loopStarted();
    dev.build("web", "started");
    dev.build("web", "failed");
    dev.loopEnded("failed");
    dev.ended("process ended", undefined, 1);
  };
  failingLoop("01A1");
  const failingRun = (id: string) => {
    const run = alice.session(id);
    run.started();
    run.configured();
    run.build("api", "started");
    run.build("api", "failed");
    run.ended("process ended", undefined, 1);
  };
  failingRun("01A2");
  await seed();

  const [any, ofSource] = [await mcp.ask("why_failed"), await mcp.ask("why_failed", { source: "alice/shop" })];
  for (const text of [any, ofSource]) expect(text).toMatch(/session 01A2: failed.*Failed first: build "api"/s);
  expect(await mcp.ask("read_output")).toMatch(/session 01A2\nErrors, the newest first:\nbuild "api" failed/);

  failingLoop("01A3");
  await seed();
  expect(await mcp.ask("why_failed")).toContain("01A3.1.1");
  expect(await mcp.ask("why_failed", { source: "alice/shop" })).toContain("01A3.1.1");
  // One that fails while a loop runs that will fail.
  const dev = alice.session("01A4");
  dev.started();
  dev.configured();
  dev.loopStarted();
  failingRun("01A5");
  dev.loopEnded("failed");
  await seed();
  const beside = await mcp.ask("why_failed");
  expect(beside).toContain("session 01A5");
  for (const text of [any, ofSource, beside]) {
    const [, again = ""] = /^Ask again: why_failed (\{.*?\})/m.exec(text) ?? [];
    expect(await mcp.ask("why_failed", JSON.parse(again))).toBe(text);
  }
});

it("`why` without a source explains a process without loops that failed after a loop of another source", async () => {
  await using on = await startSeededStack();
  await using place = await temporaryFolder();
  const scenarioOf = (developer: string) =>
    scenario(sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }));
  const bob = scenarioOf("bob");
  const dev = bob.session("01B1");
  dev.started();
  dev.loopStarted();
  dev.loopEnded("failed");
  await on.seed(bob.events);
  const alice = scenarioOf("alice");
  const run = alice.session("01A1");
  run.started();
  run.build("api", "started");
  run.build("api", "failed");
  run.ended("process ended", undefined, 1);
  await on.seed(alice.events);
  const why = async (...words: string[]) => {
    await using cli = startCli([...words, "--url", `http://${on.stack.http}`], { cwd: place.folder });
    await cli.ended;
    return cli.stdout();
  };
  expect(JSON.parse(await why("why", "--json")).left).toMatchObject({ session: "01A1", failure: { subject: "api" } });
});
