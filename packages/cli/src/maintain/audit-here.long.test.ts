import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startCli } from "../testing/cli.ts";
import { recordingFolder } from "../testing/skaffold-program.ts";
import { startUp } from "../testing/up.ts";

it("an action on the server's own machine is in its audit log, with who did it", async () => {
  await using cleanup = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-audit-"));
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  writeFileSync(join(cwd, "tapedeck.yaml"), "sources: []\n");
  const tapedeck = async (...args: string[]) => {
    await using cli = startCli(args, { cwd });
    expect({ args, code: await cli.ended, err: cli.stderr() }).toMatchObject({ code: 0 });
    return cli.stdout();
  };
  const fake = cleanup.use(
    await startFakeSkaffold({ recording: loadRecording(recordingFolder("04-deploy-failure-then-recovery")) }),
  );
  const startedUp = async (...args: string[]) => {
    const up = await startUp({ cwd, args });
    cleanup.defer(async () => void (await up.stop()));
    return up;
  };

  const up = await startedUp("--skaffold", fake.address, "--developer", "alice", "--project", "shop");
  const sessions = async () => {
    const answer = await fetch(`${up.env.TAPEDECK_URL}/api/v1/sessions?source=alice/shop`);
    return ((await answer.json()) as { items: { session: string; endedAt: string | null }[] }).items;
  };
  await fake.play();
  await fake.end("graceful");
  const session = await until(async () => (await sessions()).find(({ endedAt }) => endedAt !== null), {
    message: "the session to end",
  });

  const token = JSON.parse(await tapedeck("token", "create", "--name", "ops", "--role", "viewer", "--json"));
  await tapedeck("token", "revoke", token.id);
  await tapedeck("backup", "kept");
  await tapedeck("rebuild");
  await tapedeck("erase", "--session", session.session, "--yes");
  const { login } = JSON.parse(await tapedeck("sql-role", "create", "--workspace", "default", "--json"));
  await tapedeck("sql-role", "drop", login);
  await up.stop();
  await tapedeck("restore", "kept", "--replace");
  await tapedeck("new-epoch", "--yes");

  const again = await startedUp();
  const sizes = async () => JSON.parse(await tapedeck("workspace", "list", "--json")).items;
  const projected = await until(
    async () => {
      const [only] = await sizes();
      return only?.tables?.behindMessages === 0 && only;
    },
    { message: "the tables to be made again" },
  );
  expect(projected).toMatchObject({ workspace: "default", state: "recorded", tables: { sources: 1 } });
  await tapedeck("workspace", "retention", "default", "--facts", "90d");
  expect(await tapedeck("workspace", "show", "default")).toMatch(/^kept +facts 90d, text for ever \(its own\)$/m);
  expect(await tapedeck("workspace", "remove", "default", "--yes")).toBe(
    `removed default: ${projected.messages} messages\n`,
  );
  const answer = await fetch(`${again.env.TAPEDECK_URL}/api/v1/audit`);
  const lines = (await answer.text()).trim().split("\n");
  const entries = lines.map((line) => JSON.parse(line)).filter(({ type }) => type !== "complete");
  expect(entries.map(({ action, about }) => [action, about])).toEqual([
    ["token.created", expect.objectContaining({ id: token.id, name: "ops", roles: ["viewer"] })],
    ["token.revoked", expect.objectContaining({ id: token.id })],
    ["log.backed-up", {}],
    ["tables.rebuilt", {}],
    ["session.erasure-begun", expect.objectContaining({ session: session.session })],
    ["session.erased", expect.objectContaining({ session: session.session, events: expect.any(Number) })],
    ["sql-role.created", { login }],
    ["sql-role.dropped", { login }],
    ["log.restored", expect.objectContaining({ epoch: expect.stringMatching(/^\w{6}$/) })],
    ["log.epoch-renewed", { epoch: expect.stringMatching(/^\w{6}$/) }],
    ["workspace.retention-changed", { facts: "7776000 s", text: "for ever" }],
    ["workspace.removed", { messages: projected.messages }],
  ]);
  for (const entry of entries) {
    expect(entry).toMatchObject({ who: expect.stringMatching(/^\S+ on this machine$/), kind: "local" });
  }
  expect(JSON.stringify(entries)).not.toContain(token.token.slice(4));
});
