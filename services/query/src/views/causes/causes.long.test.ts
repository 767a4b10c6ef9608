import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Event } from "@tapedeck/shared/events/codec";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { migrated } from "../../testing/migrated.ts";
import { projectUntil, rebuildAll } from "../../testing/run-projection.ts";
import { type Fields, scenario } from "../../testing/scenario.ts";
import { type Stage, stage } from "../../testing/stage.ts";
import { contents, differencesOf } from "../../testing/tables.ts";
import { maxText } from "./read-output.ts";

const { events, add, session: sessionOf } = scenario();
const compileError = "src/room.ts(41,7): error TS2322: Type 'string | undefined' is not assignable to type 'string'.";

/** A line of the v2 log: of a task, and of the runner's loop. */
function print(text: string, session: string, loop: number, task: string, subtask = "-1") {
  const operation = { kind: "", subject: "", runner: 1, loop };
  const value = { text: `${text}\n`, task, subtask, level: "standard" };
  add({ session, channel: "v2", kind: "log.written", operation, detail: { $case: "text", value } });
}

function end(kind: string, session: string, loop: number, fields: Fields = {}) {
  const [noun = "", verb = ""] = kind.split(".");
  const outcome = verb === "failed" ? Outcome.OUTCOME_FAILED : Outcome.OUTCOME_CANCELED;
  const operation = { kind: noun, subject: fields.subject ?? "", runner: 1, loop };
  add({ session, channel: "v1", kind, outcome, operation, ...fields });
}

beforeAll(() => {
  const [dev, oneShot] = [sessionOf("dev"), sessionOf("one-shot")];
  dev.started();
  dev.configured();
  // The output of web comes before its build and after it, beside that of api.
  dev.loopStarted();
  print("#11 building", "dev", 1, "Build", "web");
  dev.build("web", "started");
  dev.build("api", "started");
  print("error: api has an error of its own", "dev", 1, "Build", "api");
  for (let line = 0; line < 20; line += 1) print(`#11 step ${line}`, "dev", 1, "Build", "web");
  const error = { code: "BUILD_UNKNOWN", message: "build [web] failed: exit status 2" };
  dev.build("web", "failed", undefined, { error });
  end("build.canceled", "dev", 1, { subject: "api" });
  dev.loopEnded("failed", undefined, error);
  print(compileError, "dev", 1, "Build", "web");
  // A sync fails in all its tries, and Skaffold goes on.
  dev.loopStarted();
  for (let tries = 0; tries < 2; tries += 1) {
    dev.phase("sync", "started");
    end("sync.failed", "dev", 2, { error: { code: "SYNC", message: 'error: container not found ("web")' } });
  }
  dev.loopEnded("succeeded");
  // One that failed and then succeeded is no failure of the loop.
  dev.loopStarted();
  dev.phase("sync", "started");
  end("sync.failed", "dev", 3, { error: { code: "SYNC", message: 'error: container not found ("web")' } });
  dev.phase("sync", "started");
  dev.phase("sync", "succeeded");
  dev.loopEnded("succeeded");
  dev.ended("process ended", undefined, 0);
  // Outside of loops the second failure has its own output.
  oneShot.started();
  for (const cause of ["error: first", "error: second"]) {
    add({ session: "one-shot", channel: "v1", kind: "deploy.started", operation: { kind: "deploy", runner: 1 } });
    print(cause, "one-shot", 0, "Deploy");
    end("deploy.failed", "one-shot", 0, { error: { code: "", message: "exit status 1" } });
  }
  oneShot.ended("exit code 1", undefined, 1);
  // Nothing but the process failed.
  const bare = sessionOf("bare");
  bare.started();
  print("error: parsing skaffold.yaml", "bare", 0, "");
  bare.ended("exit code 1", undefined, 1);
});

const stages: Stage[] = [];
afterAll(async () => {
  for (const one of stages) await one[Symbol.asyncDispose]();
});

async function written(all: readonly Event[]) {
  const on = await stage();
  stages.push(on);
  return { on, last: sequenceOf((await on.writeTogether(all, 3)).at(-1) ?? logStart) };
}

type Found = { readonly name: string; readonly outcome: string; readonly cause: string; readonly reason: string };

async function causesIn(url: string): Promise<readonly Found[]> {
  await using database = openDatabase({ url });
  const { rows } = await sql<Found>`
    select * from (
      select concat_ws(' ', session, nullif(loop, 0), kind, nullif(subject, '')) as name, outcome, cause, reason, start_position
      from operations where outcome <> 'succeeded' or cause <> ''
      union all
      select concat_ws(' ', session, loop, 'finished'), outcome, cause, reason, start_position
      from finished_loops where outcome <> 'succeeded' or cause <> ''
      union all
      select session, exit_code::text, cause, reason, start_position from sessions where exit_code <> 0) found
    order by start_position, name`.execute(database.db);
  return rows.map(({ name, outcome, cause, reason }) => ({ name, outcome, cause, reason }));
}

describe("causes", () => {
  it("are those of the output, also of what came late, and a loop's is that of the step that failed", async () => {
    const { on, last } = await written(events);
    await projectUntil(on.databaseUrl, on.log.reader, last);
    const found = await causesIn(on.databaseUrl);
    expect(found.map(({ name, outcome, cause }) => [name, outcome, cause])).toEqual([
      ["dev 1 finished", "failed", compileError],
      ["dev 1 loop", "failed", compileError],
      ["dev 1 build web", "failed", compileError],
      ["dev 1 build api", "canceled", ""],
      ["dev 2 finished", "succeeded", 'error: container not found ("web")'],
      ["dev 2 loop", "succeeded", 'error: container not found ("web")'],
      ["dev 2 sync", "failed", 'error: container not found ("web")'],
      ["dev 2 sync", "failed", 'error: container not found ("web")'],
      ["dev 3 sync", "failed", 'error: container not found ("web")'],
      ["one-shot", "1", "error: first"],
      ["one-shot deploy", "failed", "error: first"],
      ["one-shot deploy", "failed", "error: second"],
      ["bare", "1", "error: parsing skaffold.yaml"],
    ]);
    expect(found.find(({ name }) => name === "dev 1 build api")?.reason).toBe("cancelled");
    await using database = openDatabase({ url: on.databaseUrl });
    const { rows } = await sql<{ place: string; phase: string; cause: string }>`
      select concat_ws(':', cause_file, cause_line) as place, phase, cause from failures order by position`.execute(
      database.db,
    );
    expect(rows.map(({ phase, cause }) => [phase, cause])).toEqual([
      ["build", compileError],
      ["sync", 'error: container not found ("web")'],
      ["deploy", "error: first"],
      ["deploy", "error: second"],
      ["session", "error: parsing skaffold.yaml"],
    ]);
  });

  it.each([1, 2, 3, 7, 50])("are the same in batches of at most %i, and after a rebuild", async (size) => {
    const { on, last } = await written(events);
    const straight = await freshDatabase(migrated);
    await using _ = straight;
    await projectUntil(straight.url, on.log.reader, last);
    const expected = await contents(straight.url);
    for (let next = 1; next <= last; next += 1) {
      await projectUntil(on.databaseUrl, on.log.reader, next, { limits: { events: size, bytes: 1e9 } });
    }
    expect(differencesOf(await contents(on.databaseUrl), expected)).toEqual([]);
    await rebuildAll(on.databaseUrl, on.log.reader);
    expect(differencesOf(await contents(on.databaseUrl), expected)).toEqual([]);
  });

  it("are not sought in text that comes long after the end", async () => {
    const own = scenario();
    const session = own.session("late");
    const say = (text: string) => {
      const operation = { kind: "", subject: "", runner: 1, loop: 1 };
      const detail = { $case: "text" as const, value: { text, task: "Build", level: "standard" } };
      own.add({ session: "late", channel: "v2", kind: "log.written", operation, detail });
    };
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.build("web", "failed", undefined, { error: { code: "", message: "exit status 1" } });
    for (let line = 0; line < maxText.late; line += 1) say(`line ${line}\n`);
    say("error: of something else\n");
    const { on, last } = await written(own.events);
    await projectUntil(on.databaseUrl, on.log.reader, last, { limits: { events: 40, bytes: 1e9 } });
    const found = (await causesIn(on.databaseUrl)).map(({ cause }) => cause);
    expect(found).toHaveLength(1);
    expect(found).not.toContain("error: of something else");
  });
});
