import { join } from "node:path";
import { expect, it } from "vitest";
import { acme, Maintained } from "./maintained.ts";

const on = new Maintained();

it("after a login maintenance commands use its address and token; local commands say that they are local", async () => {
  const env = { XDG_CONFIG_HOME: join(on.cwd, "logged-in") };
  const login = ["login", `http://${on.harness.on.stack.http}`, "--name", "team"];
  expect(await on.tapedeck(login, { ...env, TAPEDECK_TOKEN: on.everywhere })).toMatchObject({ code: 0 });
  const there = " (context team)";
  expect(await on.tapedeck(["rebuild"], env)).toMatchObject({
    code: 0,
    err: expect.stringContaining(on.at("rebuild", there)),
  });
  expect(await on.tapedeck(["backup", "kept-after-login"], env)).toMatchObject({
    code: 0,
    err: expect.stringContaining(on.at("backup", there)),
  });
  const erase = ["erase", "--session", acme.session];
  const nobody = "tapedeck: nothing was erased: stdin is not a terminal, so nobody can confirm it; add --yes.\n";
  expect(await on.tapedeck(erase, env)).toMatchObject({ code: 1, err: `${on.at("erase", there)}${nobody}` });
  expect(await on.tapedeck([...erase, "--yes"], env)).toMatchObject({
    code: 1,
    err: expect.stringContaining("is still running: end it first"),
  });

  for (const args of [["rebuild"], ["backup", "never"], erase]) {
    const local = await on.tapedeck([...args, "--data", "nowhere"], env);
    expect(local).toMatchObject({ code: 1, err: expect.stringContaining("no Tapedeck server runs on nowhere") });
    expect(local.err).toContain(`tapedeck: ${args[0]} at this machine's Tapedeck server (nowhere)\n`);
  }
  for (const [command = "", ...args] of [["restore", "nothing"], ["new-epoch"], ["sql-role", "list"]]) {
    const { code, err } = await on.tapedeck([command, ...args], env);
    const [first, second] = err.split("\n");
    const where = `works on this machine only (.tapedeck), not on http://${on.harness.on.stack.http} (context team)`;
    expect([code, first]).toEqual([1, `tapedeck: ${command} ${where}, which other commands use`]);
    expect(second).toMatch(/^tapedeck: /);
  }
  const forAll = ["token", "create", "--name", "ops", "--role", "admin", "--all-workspaces"];
  expect((await on.tapedeck(forAll, env)).err).toContain("created on the server itself");
  expect((await on.tapedeck(["erase", "--help"], env)).out.replace(/\s+/g, " ")).toContain(
    "an admin's token, from the login or TAPEDECK_TOKEN",
  );
});
