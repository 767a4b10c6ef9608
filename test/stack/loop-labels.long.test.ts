import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Operation } from "@tapedeck/client";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { startCli } from "tapedeck/testing/cli";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

const folder = mkdtempSync(join(tmpdir(), "loop-labels-"));
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

/** A repository with a commit on main. */
function repository() {
  const cwd = mkdtempSync(join(folder, "shop-"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, encoding: "utf8" }).trim();
  const commit = (text: string) => {
    writeFileSync(join(cwd, "main.go"), text);
    git("add", "main.go");
    git("commit", "-qm", text);
    return git("rev-parse", "HEAD");
  };
  git("init", "-q", "-b", "main");
  return { cwd, git, commit };
}

/** The environment in which commands find a stack. */
const at = ({ http, grpc }: Stack) => ({
  TAPEDECK_URL: `http://${http}`,
  TAPEDECK_GRPC_PORT: grpc.split(":").at(-1) ?? "",
});

const get = async (of: Stack, path: string) => JSON.parse((await of.httpCall("GET", `/api/v1/${path}`)).body);

async function ask<Row>(statement: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: stack.database });
  await client.connect();
  try {
    return (await client.query(statement)).rows as Row[];
  } finally {
    await client.end();
  }
}

it("a loop has the branch that it began on, wherever its labels are shown", async () => {
  const { cwd, git, commit } = repository();
  const first = commit("one");
  const loops = mkdtempSync(join(folder, "loops-"));
  const env = {
    PATH: path,
    TAPEDECK_SPILL: join(folder, "spill"),
    TAPEDECK_DEVELOPER: "alice",
    ...at(stack),
    STAND_IN_RECORDING: recordingFolder("04-deploy-failure-then-recovery"),
    STAND_IN_NOW: "1",
    STAND_IN_LOOPS: loops,
  };
  const args = ["run", "--project", "shop", "--label", "ticket=7", "--", "skaffold", "dev"];
  await using cli = startCli(args, { cwd, env });
  const list = async (): Promise<readonly Operation[]> => (await get(stack, "operations?kind=loop")).items;
  const over = async (count: number, branch: string) => {
    const listed = await list();
    const last = listed[0];
    return listed.length === count && last?.outcome != null && last.labels?.branch === branch;
  };
  await until(() => over(1, "main"), { message: "loop 1" });
  git("checkout", "-qb", "fix/cart");
  const second = commit("two");
  writeFileSync(join(loops, "2"), "");
  await until(() => over(2, "fix/cart"), { message: "loop 2 on the other branch" });
  git("checkout", "-q", "main");
  writeFileSync(join(cwd, "main.go"), "three");
  writeFileSync(join(loops, "3"), "");
  await until(() => over(3, "main"), { message: "loop 3 on the first branch again" });
  process.kill(cli.child.pid ?? 0, "SIGINT");
  await cli.ended;
  await stack.caughtUp();

  const own = { host: expect.any(String), user: expect.any(String), command: "skaffold dev", ticket: "7" };
  const labels = [
    { ...own, branch: "main", commit: first, dirty: "false" },
    { ...own, branch: "fix/cart", commit: second, dirty: "false" },
    { ...own, branch: "main", commit: first, dirty: "true" },
  ];
  const listed = (await list()).toReversed().slice(0, 3);
  expect(listed.map((loop) => loop.labels)).toEqual(labels);
  const rows = await ask("select loop, labels from tapedeck.loop_times order by loop limit 3");
  expect(rows).toEqual(labels.map((one, index) => ({ loop: index + 1, labels: one })));
  const builds = await ask<{ branch: string }>(
    "select distinct loop, labels ->> 'branch' as branch from tapedeck.build_times where loop < 4 order by loop",
  );
  expect(builds.map(({ branch }) => branch)).toEqual(["main", "fix/cart", "main"]);
  const { items: sessions } = await get(stack, "sessions");
  expect(sessions).toMatchObject([{ labels: labels[0] }]);
  const { items: events } = await get(stack, "events?kind=session.labelled");
  expect(events.map(({ summary }: { summary: string }) => summary)).toEqual([
    `changed: main.go; labels: branch fix/cart, commit ${second}, dirty false`,
    `changed: main.go; labels: branch main, commit ${first}, dirty true`,
  ]);

  const [{ session }] = sessions;
  const compared = await get(stack, `compare?left=${session}.1.2&right=${session}.1.1`);
  const ofLabels = compared.differences.filter(({ kind }: { kind: string }) => kind === "label");
  expect(ofLabels.map(({ subject }: { subject: string }) => subject).toSorted()).toEqual(["branch", "commit"]);
  expect(JSON.stringify(ofLabels)).toContain(events[0].position);

  expect(compared.differences).toContainEqual({
    kind: "file",
    subject: "main.go",
    text: "main.go was modified since loop 1",
    left: "modified",
    right: null,
    evidence: [{ side: "left", session, position: events[0].position, text: "modified" }],
  });

  const file = join(folder, "shop.tapedeck");
  const exported = startCli(["export", "-s", "alice/shop", "-o", file], { cwd, env: at(stack) });
  expect([await exported.ended, exported.stderr()]).toEqual([0, expect.anything()]);
  await using other = await startStack({});
  const imported = startCli(["import", file], { cwd, env: at(other) });
  expect([await imported.ended, imported.stderr()]).toEqual([0, expect.anything()]);
  await other.caughtUp();
  const there: readonly Operation[] = (await get(other, "operations?kind=loop")).items;
  expect(
    there
      .toReversed()
      .slice(0, 3)
      .map((loop) => loop.labels),
  ).toEqual(labels);
});
