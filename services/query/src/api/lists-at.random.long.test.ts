import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { ListRequest as Request } from "@tapedeck/proto/tapedeck/v1/query";
import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, type Sequence } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../db/database.ts";
import { ProjectedPosition } from "../projecting/progress.ts";
import { migrated } from "../testing/migrated.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario } from "../testing/scenario.ts";
import { type Stage, stage } from "../testing/stage.ts";
import { folds } from "../views/folds.ts";
import type { ApiDeps } from "./deps.ts";
import { listOperations } from "./list-operations.ts";
import { listSessions } from "./list-sessions.ts";
import { listSources } from "./list-sources.ts";

it("lists as of a position equal the lists of tables that end there", async () => {
  await using on = await stage();
  const random = seeded(8);
  const events = randomEvents(random, 2_000).filter(({ kind }) => kind !== "session.erased");
  const end = (await on.write(events)).at(-1) ?? 0;
  await using all = await freshDatabase(migrated);
  await projectUntil(all.url, on.log.reader, end);
  await using whole = openDatabase({ url: all.url });

  await using growing = await freshDatabase(migrated);
  await using partial = openDatabase({ url: growing.url });
  for (let position = 1 + random(150); position < end; position += 1 + random(300)) {
    await projectUntil(growing.url, upTo(on.log.reader, position), position);
    expect(await lists(on, whole, on.endAt(position))).toEqual(await lists(on, partial, ""));
  }
});

it("a loop that ended more than once is listed as it stood at each position", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("01S1");
  session.started();
  session.configured();
  session.loopStarted();
  for (const verb of ["failed", "failed", "succeeded"] as const) {
    session.phase("sync", "started");
    session.phase("sync", verb);
    session.loopEnded(verb);
  }
  session.loopStarted();
  session.build("web", "started");
  session.lost("killed");
  script.add({ kind: "upstream.restored", session: "01S1" });
  session.build("web", "failed");
  session.loopEnded("failed");
  session.loopStarted();
  const seqs = await on.write(script.events);
  await using all = await freshDatabase(migrated);
  await projectUntil(all.url, on.log.reader, seqs.at(-1) ?? 0);
  await using whole = openDatabase({ url: all.url });
  await using growing = await freshDatabase(migrated);
  await using partial = openDatabase({ url: growing.url });
  for (const seq of seqs) {
    await projectUntil(growing.url, upTo(on.log.reader, seq), seq);
    expect(await lists(on, whole, on.endAt(seq))).toEqual(await lists(on, partial, ""));
  }
});

it("a session that ended after it was lost is listed with the exit code of the end at each position", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("01S1");
  session.started();
  session.build("web", "started");
  session.build("web", "failed");
  session.lost("killed");
  script.add({ kind: "upstream.restored", session: "01S1" });
  session.ended("process ended", undefined, 1);
  script.add({ kind: "upstream.restored", session: "01S1" });
  const command_run = { command_line: "skaffold build", exit_code: 0 };
  session.own("session.ended", { $case: "session_detail", value: { reason: "process ended", command_run } });
  const makeRun = { command_line: "make build", exit_code: 2, wrapper: true };
  session.own("session.ended", { $case: "session_detail", value: { command_run: makeRun } });
  const seqs = await on.write(script.events);
  await using all = await freshDatabase(migrated);
  await projectUntil(all.url, on.log.reader, seqs.at(-1) ?? 0);
  await using whole = openDatabase({ url: all.url });
  await using growing = await freshDatabase(migrated);
  await using partial = openDatabase({ url: growing.url });
  const codes: unknown[] = [];
  for (const seq of seqs) {
    await projectUntil(growing.url, upTo(on.log.reader, seq), seq);
    const then = await lists(on, whole, on.endAt(seq));
    expect(then).toEqual(await lists(on, partial, ""));
    codes.push(then.sessions.flatMap(({ ended, exit_code, command_line }) => [ended, exit_code, command_line]));
  }
  const running = [false, undefined, ""];
  expect(codes).toEqual([
    ...[running, running, running],
    [true, undefined, ""],
    running,
    [true, 1, ""],
    running,
    [true, 0, "skaffold build"],
    [true, undefined, "make build"],
  ]);
});

/** The log as if it ended there, so that tables end there, too, however many events are taken at once. */
function upTo(log: LogReader, seq: Sequence): LogReader {
  return {
    ...log,
    async *follow(from, { signal, reached }) {
      yield* log.history(from, endOf(seq), signal);
      reached?.(endOf(seq));
    },
  };
}

async function lists(on: Stage, database: Database, at: string) {
  const deps: ApiDeps = {
    database: () => database,
    log: () => on.log.reader,
    workspace: "acme",
    progress: new ProjectedPosition(),
    folds,
  };
  const request: ListRequest = Request.fromPartial({ workspace: "acme", at, limit: 1_000 });
  const sources = await listSources(deps, request);
  const sessions = await listSessions(deps, request);
  const operations = await listOperations(deps, request);
  const succeeded = await listOperations(deps, { ...request, outcomes: ["succeeded"] });
  const failed = await listOperations(deps, { ...request, kinds: ["loop"], outcomes: ["failed"], limit: 3 });
  return {
    position: [sources.position, sessions.position, operations.position],
    // Text and mirrors have no rows to be found by; the address is the newest. Clocks and silence are known of now alone.
    sources: sources.items.map(({ last_position, last_event_at, address, clock_offset_ms, lag_ms, ...source }) => ({
      ...source,
      lag_ms: source.status === "lost" ? undefined : lag_ms,
    })),
    // Output that comes later may change a cause.
    sessions: sessions.items.map(({ end_position, labels, cause, ...session }) => ({
      ...session,
      end_position: session.ended && end_position,
    })),
    // They come with the end, and are known from then on.
    operations: operations.items.map(({ platform, cause, ...operation }) => operation),
    succeeded: succeeded.items.map(({ id }) => id),
    failed: failed.items.map(({ id }) => id),
  };
}
