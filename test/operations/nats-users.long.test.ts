import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { startCli } from "tapedeck/testing/cli";
import { expect, inject, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { workspaceScenario } from "../stack/two-workspaces.ts";
import { loginOf, startNatsWithUsers, violations } from "./nats-users.ts";

it("the command line makes tokens, backs up, restores and begins a new epoch as its own user", async () => {
  await using nats = await startNatsWithUsers();
  const cwd = await mkdtemp(join(inject("serversFolder"), "users-"));
  const tapedeck = async (...args: string[]) => {
    await using cli = startCli(args, { cwd, env: { TAPEDECK_NATS_URL: nats.url, ...loginOf("cli") } });
    return { code: await cli.ended, said: cli.stdout() + cli.stderr() };
  };
  // Backed up elsewhere.
  {
    await using on = await startSeededStack();
    await on.seed(workspaceScenario("acme").events);
    const made = await tapedeck("backup", "kept", "--url", `http://${on.stack.http}`);
    expect(made).toMatchObject({ code: 0 });
  }
  const here = ["--data", "none"];
  const restored = await tapedeck("restore", "kept", ...here);
  expect(restored).toMatchObject({ code: 0, said: expect.stringContaining("its log continues as epoch") });
  expect(await tapedeck("restore", "kept", "--replace", ...here)).toMatchObject({ code: 0 });
  expect(await tapedeck("new-epoch", "--workspace", "acme", "--yes", ...here)).toMatchObject({ code: 0 });
  expect(await tapedeck("backup", "again", ...here)).toMatchObject({ code: 0 });
  expect(await tapedeck("token", "create", "--name", "operator", "--role", "viewer", ...here)).toMatchObject({
    code: 0,
  });
  expect(await tapedeck("token", "list", ...here)).toMatchObject({
    code: 0,
    said: expect.stringContaining("operator"),
  });
  expect(await violations(nats)).toEqual([]);
});
