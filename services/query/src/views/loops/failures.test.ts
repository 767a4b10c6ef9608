import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { projectUntil } from "../../testing/run-projection.ts";
import { type Scenario, type SkaffoldSession, scenario } from "../../testing/scenario.ts";
import { stage } from "../../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";

const second = 1_000;

function begun(script: Scenario, id: string): SkaffoldSession {
  const session = script.session(id);
  session.started({ branch: "main" });
  session.configured();
  return session;
}

/** A round of v0.40.0 or of `skaffold run` in which `web` is built first, at this time, and fails at once. */
function failedBuild(session: SkaffoldSession, at: number): void {
  session.build("web", "started", at);
  session.build("web", "failed", at + 100);
}

/** The causes in the tables of a log that has only these events: phase, subject, error code, and the event that ended it. */
async function causes(script: Scenario): Promise<readonly unknown[]> {
  await using own = await stage();
  const end = sequenceOf((await own.writeTogether(script.events, 1)).at(-1) ?? logStart);
  await projectUntil(own.databaseUrl, own.log.reader, end, { limits: { events: 100, bytes: 1_000_000 } });
  await using database = openDatabase({ url: own.databaseUrl, connections: 1 });
  const { rows } = await sql<Record<string, unknown>>`
    select phase, subject, error_code as code, extract(epoch from failed_at - '2026-11-20T09:00:00Z')::float8 as at,
      labels ->> 'branch' as branch
    from failures order by failed_at, position`.execute(database.db);
  return rows.map(({ phase, subject, code, at, branch }) => [phase, subject, code, at, branch]);
}

it("outside of loops each round has a cause, also where nothing was good in between", async () => {
  const script = scenario();
  const session = begun(script, "A");
  failedBuild(session, 1 * second);
  failedBuild(session, 5 * second);
  session.build("api", "started", 9 * second);
  session.build("api", "failed", 9_200);
  session.build("web", "started", 20 * second);
  session.build("web", "succeeded", 21 * second);
  session.phase("deploy", "started", 21 * second);
  session.phase("deploy", "failed", 22 * second);
  expect(await causes(script)).toEqual([
    ["build", "web", "BUILD_UNKNOWN", 1.1, "main"],
    ["build", "web", "BUILD_UNKNOWN", 5.1, "main"],
    ["build", "api", "BUILD_UNKNOWN", 9.2, "main"],
    ["deploy", "", "", 22, "main"],
  ]);
});

it("a build that Skaffold ends because another one failed is no cause, whether it ran or waited", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.build("api", "started", 1 * second);
  session.build("worker", "started", 1 * second);
  failedBuild(session, 3 * second);
  session.build("api", "failed", 3_102);
  // It waited for its turn, as in the recording 03-first-build-fails-process-exits.
  session.build("docs", "started", 3_103);
  session.build("docs", "failed", 3_104);
  session.build("last", "started", 3_105);
  session.build("last", "failed", 3_106);
  session.build("worker", "succeeded", 3_110);
  // The next round, of another artifact.
  session.build("docs", "started", 4_500);
  session.build("docs", "failed", 5_000);
  expect(await causes(script)).toEqual([
    ["build", "web", "BUILD_UNKNOWN", 3.1, "main"],
    ["build", "docs", "BUILD_UNKNOWN", 5, "main"],
  ]);
});

it("an artifact that fails again at once fails in the next round", async () => {
  const script = scenario();
  const session = begun(script, "A");
  failedBuild(session, 1_000);
  failedBuild(session, 1_200);
  expect(await causes(script)).toHaveLength(2);
});

it("a deploy whose status check failed is no cause, and other sessions and configurations have their own", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.phase("deploy", "started", 1_000);
  session.phase("check", "started", 1_500);
  session.phase("check", "failed", 3_000);
  session.phase("deploy", "failed", 3_001);
  session.configured(3_050);
  failedBuild(session, 3_100);
  const other = begun(script, "B");
  failedBuild(other, 3_101);
  expect(await causes(script)).toEqual([
    ["check", "", "", 3, "main"],
    ["build", "web", "BUILD_UNKNOWN", 3.2, "main"],
    ["build", "web", "BUILD_UNKNOWN", 3.201, "main"],
  ]);
});

it("a loop whose end was not observed has its first failed step", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.loopStarted(1_000);
  session.phase("sync", "started", 1_100);
  session.phase("sync", "failed", 1_200);
  session.phase("sync", "started", 2_900);
  session.phase("sync", "failed", 3_000);
  const second = session.loopStarted(5_000);
  session.labelled({ branch: "fix" }, second);
  session.build("api", "started", 5_100);
  session.build("api", "failed", 6_000);
  session.lost("the tap was killed", 7_000);
  expect(await causes(script)).toEqual([
    ["sync", "", "", 1.2, "main"],
    ["build", "api", "BUILD_UNKNOWN", 6, "fix"],
  ]);
});

it("a session that only its exit code shows as failed is a cause; not beside loops, or another failure", async () => {
  const script = scenario();
  const ended = (id: string, at: number, exitCode: number) => {
    const session = begun(script, id);
    return { session, end: () => session.ended(`process ended with exit code ${exitCode}`, at, exitCode) };
  };
  const silent = ended("A", 1_000, 5);
  silent.session.build("web", "started", 500);
  silent.session.build("web", "succeeded", 900);
  const good = ended("B", 2_000, 0);
  const looped = ended("C", 3_000, 1);
  looped.session.loopStarted(2_500);
  looped.session.loopEnded("succeeded", 2_600);
  const failed = ended("D", 4_000, 1);
  failedBuild(failed.session, 3_500);
  for (const { end } of [silent, good, looped, failed]) end();
  expect(await causes(script)).toEqual([
    ["session", "", "", 1, "main"],
    ["build", "web", "BUILD_UNKNOWN", 3.6, "main"],
  ]);
});

it("a running loop has no cause; one that went on after a failed sync has it; a failed one has the code of its phase", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.loopStarted(1_000);
  session.phase("sync", "started", 1_100);
  session.phase("sync", "failed", 1_200);
  session.loopEnded("succeeded", 1_300);
  session.loopStarted(2_000);
  session.build("web", "started", 2_000);
  session.build("web", "failed", 2_500, { error: { code: "BUILD_PUSH_ACCESS_DENIED", message: "denied" } });
  session.loopEnded("failed", 2_600, { code: "UNKNOWN_ERROR", message: "something" });
  session.loopStarted(3_000);
  session.build("web", "started", 3_000);
  session.build("web", "failed", 3_500, { error: { code: "UNKNOWN_ERROR", message: "" } });
  session.loopEnded("failed", 3_600, { code: "BUILD_DOCKER_UNAVAILABLE", message: "no docker" });
  session.loopStarted(4_000);
  session.build("web", "started", 4_000);
  session.build("web", "failed", 4_500);
  expect(await causes(script)).toEqual([
    ["sync", "", "", 1.3, "main"],
    ["build", "web", "BUILD_PUSH_ACCESS_DENIED", 2.6, "main"],
    ["build", "web", "BUILD_DOCKER_UNAVAILABLE", 3.6, "main"],
  ]);
});

it("a sync that worked when it was tried again is not the cause of its loop's failure", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.loopStarted(1_000);
  session.phase("sync", "started", 1_100);
  session.phase("sync", "failed", 1_200);
  session.loopEnded("failed", 1_210);
  session.phase("sync", "started", 2_000);
  session.phase("sync", "succeeded", 2_100);
  session.build("api", "started", 2_200);
  session.build("api", "failed", 2_500);
  session.loopEnded("failed", 2_600);
  expect(await causes(script)).toEqual([["build", "api", "BUILD_UNKNOWN", 2.6, "main"]]);
});

it("a build that failed before any artifact's began is a cause, and no build of an artifact", async () => {
  const script = scenario();
  const session = begun(script, "A");
  session.build("", "failed", 1_000);
  session.loopStarted(5_000);
  session.build("", "failed", 5_500);
  session.loopEnded("failed", 5_600, { code: "", message: "no tag" });
  await using own = await stage();
  const end = sequenceOf((await own.writeTogether(script.events, 1)).at(-1) ?? logStart);
  await projectUntil(own.databaseUrl, own.log.reader, end, { limits: { events: 100, bytes: 1_000_000 } });
  await using database = openDatabase({ url: own.databaseUrl, connections: 1 });
  const rows = async (query: string) => (await sql.raw<Record<string, unknown>>(query).execute(database.db)).rows;
  expect(await rows("select phase, subject from failures order by failed_at")).toEqual([
    { phase: "build", subject: "" },
    { phase: "build", subject: "" },
  ]);
  expect(await rows("select failed_phase, failed_subject, builds from loop_times")).toEqual([
    { failed_phase: "build", failed_subject: "", builds: 0 },
  ]);
  for (const counts of ["build_times", "build_times_daily", "build_months", "slowest_artifacts", "flaky_artifacts"])
    expect(await rows(`select * from ${counts}`), counts).toEqual([]);
});

it("commands of Vagrant fail each by itself", async () => {
  const script = scenario(vagrantShop);
  const server = vagrantSession("V1", script);
  server.began();
  for (const [index, code] of [1, 2].entries()) {
    server.queued(ulid(index), index === 0 ? "up" : "provision", { at: 0 });
    server.started(ulid(index), { at: 1_000 });
    server.finished(ulid(index), code, { at: 2_000 + index });
  }
  expect(await causes(script)).toEqual([
    ["command", "up", "1", 2, null],
    ["command", "provision", "2", 2.001, null],
  ]);
});

it("a job of Vagrant is a cause where none of its commands failed: setting up, and one that never began", async () => {
  const script = scenario(vagrantShop);
  const server = vagrantSession("V1", script);
  server.began();
  server.queued(ulid(0), "", { at: 0 });
  server.started(ulid(0), { at: 1_000 });
  server.failed(ulid(0), { at: 2_000 });
  server.queued(ulid(1), "up", { at: 3_000 });
  server.failed(ulid(1), { at: 4_000 });
  server.queued(ulid(2), "halt", { at: 5_000 });
  server.started(ulid(2), { at: 6_000 });
  server.failed(ulid(2), { at: 7_000 });
  expect(await causes(script)).toEqual([
    ["job", "init", "2", 2, null],
    ["job", "up", "2", 4, null],
    ["command", "halt", "2", 7, null],
  ]);
});
