import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { withCauses } from "@tapedeck/client/lanes/causes";
import { headlineOf } from "@tapedeck/client/lanes/headline";
import { foldNow, type Now } from "@tapedeck/client/lanes/now";
import { Client } from "pg";
import { importFiles } from "tapedeck/commands/import/run";
import { sessionLines } from "tapedeck/commands/run/session-lines";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

const logs = join(import.meta.dirname, "event-logs");
const cleanup = new AsyncDisposableStack();
let stack: Stack;
let client: Client;

beforeAll(async () => {
  stack = cleanup.use(await startStack({}));
  vi.stubEnv("TAPEDECK_GRPC_PORT", stack.grpc.split(":").at(-1));
  client = new Client({ connectionString: stack.database });
  await client.connect();
  cleanup.defer(() => client.end());
});
afterAll(() => {
  vi.unstubAllEnvs();
  return cleanup.disposeAsync();
});

/** What a command prints about the project. */
async function printed(command: "loops" | "why", source: string): Promise<string> {
  await using cli = startCli([command, "-s", source], { cwd: logs, env: { TAPEDECK_URL: `http://${stack.http}` } });
  await cli.ended;
  return cli.stdout();
}

type Items = { readonly items: readonly Record<string, unknown>[] };

/** Imports an event log of a project of its own, and gives functions that ask about it. */
async function imported(project: string, file = project) {
  const output = vi.spyOn(console, "log").mockReturnValue();
  await importFiles([resolve(logs, file)], {
    url: `http://${stack.http}`,
    redact: "on",
    developer: "kim",
    project,
  }).finally(() => output.mockRestore());
  await stack.caughtUp();
  const get = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body) as Items;
  const sql = async (query: string) => (await client.query<Record<string, unknown>>(query, [project])).rows;
  const events = async () => (await get(`events?project=${project}&after=start&limit=1000`)).items;
  const why = async () =>
    JSON.parse((await stack.httpCall("GET", `/api/v1/compare?left=kim/${project}`)).body) as {
      readonly left: Record<string, unknown>;
      readonly right: Record<string, unknown> | null;
    };
  return { get, sql, events, why };
}

it("a loop whose sync failed in all its tries has failed everywhere, though Skaffold says it succeeded", async () => {
  const { get, sql, events, why } = await imported("sync-fails-loop-succeeds");
  expect(
    await sql(
      "select loop, outcome, failed_phase, failed_subject, sync_ms, other_ms from tapedeck.loop_times where project = $1 order by loop",
    ),
  ).toEqual([
    { loop: 1, outcome: "succeeded", failed_phase: "", failed_subject: "", sync_ms: "0", other_ms: "80" },
    { loop: 2, outcome: "failed", failed_phase: "sync", failed_subject: "web", sync_ms: "2160", other_ms: "600" },
  ]);
  expect(await sql("select phase, subject, error_code from tapedeck.failures where project = $1")).toEqual([
    { phase: "sync", subject: "web", error_code: "SYNC_UNKNOWN" },
  ]);
  expect(await sql("select count(*)::int as red from tapedeck.time_to_green where project = $1")).toEqual([{ red: 1 }]);
  const { items } = await get("operations?project=sync-fails-loop-succeeds&kind=sync&outcome=failed");
  expect(items).toHaveLength(4);
  const all = await events();
  expect(all.findLast(({ kind }) => String(kind).startsWith("loop."))).toMatchObject({
    kind: "loop.failed",
    summary: expect.stringMatching(/^loop 2 failed: sync of web in 4 tries: copying files: /),
  });
  const now = all.reduce<Now>((rows, event) => foldNow(rows, event as never), new Map());
  const [row] = now.values();
  expect(row?.loops.map(({ outcome }) => outcome)).toEqual(["succeeded", "failed"]);
  expect(await printed("loops", "kim/sync-fails-loop-succeeds")).toMatch(/sync web \(4 tries\): copying files: /);
  expect(await printed("why", "kim/sync-fails-loop-succeeds")).toMatch(
    /sync web \(4 tries\): copying files: [\s\S]*sync web failed in 4 tries: copying files: /,
  );
  expect(await why()).toMatchObject({
    left: { unit: "loop", loop: 2, outcome: "failed", failure: { phase: "sync", subject: "web", tries: 4 } },
    right: { loop: 1, outcome: "succeeded" },
  });
});

it("builds that Skaffold ended because another failed are canceled, and not flaky", async () => {
  const { sql, why } = await imported("canceled-builds");
  expect(await sql("select artifact, outcome from tapedeck.build_times where project = $1 order by artifact")).toEqual([
    { artifact: "api", outcome: "failed" },
    { artifact: "web", outcome: "canceled" },
    { artifact: "worker", outcome: "canceled" },
  ]);
  expect(await sql("select subject from tapedeck.failures where project = $1")).toEqual([{ subject: "api" }]);
  expect(await why()).toMatchObject({ left: { outcome: "failed", failure: { phase: "build", subject: "api" } } });
});

it("a session without loops is over when it is, failed when a step of it did, and names the first", async () => {
  const { get, sql, why } = await imported("exec-fails");
  expect((await get("sessions?project=exec-fails")).items).toMatchObject([{ endedAt: expect.any(String) }]);
  expect(await sql("select phase, subject from tapedeck.failures where project = $1")).toEqual([
    { phase: "exec", subject: "seed" },
  ]);
  expect(await why()).toMatchObject({
    left: { unit: "session", outcome: "failed", failure: { phase: "exec", subject: "seed" } },
  });
});

it("a one-shot that succeeded does not hide the failed one before it", async () => {
  const { why } = await imported("exec-fails-then-builds", "exec-fails");
  const folder = await mkdtemp(join(tmpdir(), "event-log-"));
  const at = (second: number) => `2026-11-28T09:00:0${second}Z`;
  const build = (status: string) => ({ buildEvent: { artifact: "web", status } });
  const lines = [
    { timestamp: at(0), event: { metaEvent: { entry: "Starting Skaffold: {Version:v2.24.0}" } } },
    { timestamp: at(1), event: build("In Progress"), entry: "Build started for artifact web" },
    { timestamp: at(2), event: build("Complete"), entry: "Build completed for artifact web" },
  ];
  await writeFile(join(folder, "builds"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await imported("exec-fails-then-builds", join(folder, "builds"));
  await rm(folder, { recursive: true });
  expect(await why()).toMatchObject({
    left: { unit: "session", outcome: "failed", failure: { phase: "exec", subject: "seed" } },
  });
  expect(await printed("why", "kim/exec-fails-then-builds")).toContain("exec seed");
});

it("a sync that worked when it was tried again is not what failed first", async () => {
  const { sql, why } = await imported("deploy-fails-after-sync");
  expect(await sql("select phase, subject from tapedeck.failures where project = $1")).toEqual([
    { phase: "deploy", subject: "" },
  ]);
  expect(await why()).toMatchObject({ left: { failure: { phase: "deploy", tries: 1 } } });
  expect(await printed("loops", "kim/deploy-fails-after-sync")).toMatch(/deploy: kubectl apply: exit status 1/);
});

it("a loop whose end was not seen names the step that failed in it", async () => {
  const { sql } = await imported("build-fails-then-cut");
  expect(await sql("select phase, subject from tapedeck.failures where project = $1")).toEqual([
    { phase: "build", subject: "web" },
  ]);
  expect(await printed("loops", "kim/build-fails-then-cut")).toMatch(/unknown .*build web: couldn't build "web"/);
});

const noCommit = 'tag of "web": error: the folder web has no commit';

/** What a person sees of it at the end of `tapedeck run`. */
async function lastLine(session: string): Promise<string | undefined> {
  const lines: string[] = [];
  const env = { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_GRPC_PORT: "1", XDG_CONFIG_HOME: logs };
  const said = sessionLines(undefined, env, (line) => lines.push(line), 60_000);
  said.found(session);
  await said.end(new AbortController().signal, { code: 1, signal: null });
  return lines.at(-1);
}

it("a command whose phase failed before any step began has that failure everywhere", async () => {
  const { get, sql, events, why } = await imported("tag-fails");
  expect(await sql("select phase, subject, error_code, error from tapedeck.failures where project = $1")).toEqual([
    { phase: "build", subject: "", error_code: "BUILD_UNKNOWN", error: noCommit },
  ]);
  // No artifact was built.
  expect(await sql("select artifact from tapedeck.build_times where project = $1")).toEqual([]);
  expect(await sql("select artifact from tapedeck.build_times_daily where project = $1")).toEqual([]);
  const all = await events();
  const now = all.reduce<Now>((rows, event) => foldNow(rows, event as never), new Map());
  const { items: failed } = await get("operations?project=tag-fails&outcome=failed");
  const row = [...withCauses(now, failed as never).values()][0] ?? expect.fail("no row");
  expect(headlineOf(row, Date.parse("2026-11-27T13:00:00Z"))).toMatchObject({
    sign: "failed",
    step: "build",
    text: expect.stringContaining(noCommit),
  });
  expect(await why()).toMatchObject({
    left: { unit: "session", outcome: "failed", failure: { phase: "build", subject: "", error: noCommit } },
  });
  expect(await printed("why", "kim/tag-fails")).toContain(noCommit);
  const [{ session = "" } = {}] = (await get("sessions?project=tag-fails")).items;
  expect(await lastLine(String(session))).toMatch(/^build failed: /);
});

it("a loop whose phase failed before any step began names the phase", async () => {
  const { sql, why } = await imported("tag-fails-in-loop");
  expect(
    await sql("select outcome, failed_phase, failed_subject, builds from tapedeck.loop_times where project = $1"),
  ).toEqual([{ outcome: "failed", failed_phase: "build", failed_subject: "", builds: 0 }]);
  expect(await sql("select phase, error from tapedeck.failures where project = $1")).toEqual([
    { phase: "build", error: noCommit },
  ]);
  expect(await why()).toMatchObject({
    left: { unit: "loop", outcome: "failed", failure: { phase: "build", subject: "", error: noCommit, tries: 1 } },
  });
  expect(await printed("loops", "kim/tag-fails-in-loop")).toContain(`build: ${noCommit}`);
});

it("a process that can't make its runner has failed, and says why", async () => {
  const { get, sql, why } = await imported("runner-fails");
  const error = "creating tagger: unknown policy of tags";
  expect(await sql("select phase, error_code, error from tapedeck.failures where project = $1")).toEqual([
    { phase: "init", error_code: "INIT_CREATE_TAGGER_ERROR", error },
  ]);
  expect(await why()).toMatchObject({
    left: { unit: "session", outcome: "failed", failure: { phase: "init", error } },
  });
  expect(await printed("why", "kim/runner-fails")).toMatch(new RegExp(`init: .*${error}`));
  const [{ session = "" } = {}] = (await get("sessions?project=runner-fails")).items;
  expect(await lastLine(String(session))).toMatch(/^init failed: /);
});

it("an event log of v1 without v2 names the phase that the code of its loop's error shows", async () => {
  const { sql, why } = await imported("dependencies-fail");
  expect(await sql("select failed_phase, error_code from tapedeck.loop_times where project = $1")).toEqual([
    { failed_phase: "init", error_code: "DEVINIT_REGISTER_TEST_DEPS" },
  ]);
  expect(await why()).toMatchObject({ left: { unit: "loop", failure: { phase: "init" } } });
});

describe("an event log of v2 without v1", () => {
  it("has the loops and steps of both", async () => {
    const { sql, why } = await imported("sync-fails-v2", "sync-fails-loop-succeeds.v2");
    expect(
      await sql(
        "select loop, iteration, outcome, failed_phase, error_code from tapedeck.loop_times where project = $1 order by loop",
      ),
    ).toEqual([
      { loop: 1, iteration: 0, outcome: "succeeded", failed_phase: "", error_code: "" },
      { loop: 2, iteration: 1, outcome: "failed", failed_phase: "sync", error_code: "SYNC_UNKNOWN" },
    ]);
    expect(await sql("select phase from tapedeck.failures where project = $1")).toEqual([{ phase: "sync" }]);
    expect(await why()).toMatchObject({
      left: { unit: "loop", loop: 2, outcome: "failed", failure: { phase: "sync", tries: 4 } },
      right: { loop: 1, outcome: "succeeded" },
    });
    expect(await printed("loops", "kim/sync-fails-v2")).toMatch(/sync \(4 tries\): copying files: /);
  });

  it("names the failed phase of a loop whose steps it does not have", async () => {
    const { sql, why } = await imported("canceled-builds-v2", "canceled-builds.v2");
    const error = 'couldn\'t build "api": exit status 3';
    expect(await sql("select phase, subject, error from tapedeck.failures where project = $1")).toEqual([
      { phase: "build", subject: "", error },
    ]);
    expect(await sql("select failed_phase from tapedeck.loop_times where project = $1")).toEqual([
      { failed_phase: "build" },
    ]);
    expect(await why()).toMatchObject({
      left: { unit: "loop", outcome: "failed", failure: { phase: "build", subject: "", error } },
    });
    expect(await printed("loops", "kim/canceled-builds-v2")).toContain(`build: ${error}`);
  });

  it("has a phase that failed as a whole once", async () => {
    const { sql, why } = await imported("tag-fails-v2", "tag-fails-in-loop.v2");
    expect(await sql("select phase, subject, error from tapedeck.failures where project = $1")).toEqual([
      { phase: "build", subject: "", error: noCommit },
    ]);
    expect(await why()).toMatchObject({ left: { unit: "loop", failure: { phase: "build", tries: 1 } } });
  });
});

it.each([
  "build-fails-then-cut",
  "canceled-builds",
  "dependencies-fail",
  "exec-fails",
  "runner-fails",
  "sync-fails-loop-succeeds",
  "tag-fails",
  "tag-fails-in-loop",
])("every surface names the same cause of %s", async (file) => {
  const project = `same-${file}`;
  const { get, sql, events, why } = await imported(project, file);
  const failures = await sql(
    "select session, cause, reason, operation_id from tapedeck.failures where project = $1 order by position",
  );
  const { session, cause, reason, operation_id: operation } = failures.at(-1) ?? {};
  expect(cause).toMatch(/\w/);
  expect(reason).toMatch(/\w/);

  const named = { text: cause, reason };
  expect(await why()).toMatchObject({ left: { session, failure: { cause: named } } });
  const { items: failed } = await get(`operations?project=${project}&outcome=failed`);
  expect(failed.find(({ id }) => id === operation)).toMatchObject({ cause: named });
  const columns = ["operations", "loop_times"].map((table) =>
    sql(
      `select distinct cause, reason from tapedeck.${table} where project = $1 and cause = '${String(cause).replaceAll("'", "''")}'`,
    ),
  );
  for (const rows of await Promise.all(columns)) expect([[], [{ cause, reason }]]).toContainEqual(rows);
  const { items: causes } = await get(`stats/failures?project=${project}&group=reason,cause`);
  expect(causes).toContainEqual(expect.objectContaining({ reason }));

  const now = (await events()).reduce<Now>((rows, event) => foldNow(rows, event as never), new Map());
  const row = [...withCauses(now, failed as never).values()][0] ?? expect.fail("no row");
  expect(headlineOf(row, Date.parse("2026-11-27T13:00:00Z"))).toMatchObject({
    text: expect.stringContaining(String(cause)),
  });
  const texts = [await printed("why", `kim/${project}`), (await lastLine(String(session))) ?? ""];
  for (const text of texts) expect(text).toContain(cause);
});
