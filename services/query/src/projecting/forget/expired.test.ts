import { jetstreamManager } from "@nats-io/jetstream";
import { endOf, type Offset } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { queryClient } from "../../testing/client.ts";
import { scenario } from "../../testing/scenario.ts";
import { reaches, stage } from "../../testing/stage.ts";
import { streams } from "../../testing/streams.ts";
import { views } from "../../views/views.ts";
import { type Rebuild, rebuild } from "../rebuild.ts";
import { rebuildWorkspace } from "../rebuild-workspace.ts";

const [old, secret, young] = ["01OLD", "01SECRET", "01YOUNG"] as const;

function recorded() {
  const script = scenario();
  for (const [id, ms] of [
    [old, 1_000],
    [secret, 500_000],
    [young, 900_000],
  ] as const) {
    const session = script.session(id);
    session.started({}, ms);
    session.configured();
    session.loopStarted();
    session.build("web", "started", ms + 10);
    session.build("web", id === old ? "failed" : "succeeded", ms + 2_010);
    session.build("api", "started", ms + 3_000);
    session.build("api", "succeeded", ms + 3_400);
    session.loopEnded("failed");
    session.ended("over", ms + 5_000);
  }
  return script;
}

const mark = (session: string, expired: boolean) => ({
  session,
  subject: session,
  kind: "session.erased",
  detail: { $case: "session_detail", value: { erased: { expired } } } as const,
});

/** The daily sums, without developers. */
async function sums({ db }: Database) {
  const { rows } = await sql<{ artifact: string; developers: string[]; builds: number; failed: number; p50: number }>`
    select artifact, array_agg(distinct developer order by developer) as developers, sum(builds)::int as builds,
      sum(failed)::int as failed, max(p50_ms) as p50 from build_times_daily group by artifact order by artifact`.execute(
    db,
  );
  return rows.map(({ p50, ...row }) => ({ ...row, p50: Math.round(p50 / 100) * 100 }));
}

it("builds of an expired session stay counted, without a developer, and through rebuilds; those of an erased one do not", async ({
  signal,
}) => {
  await using on = await stage();
  await using logs = await streams(on, ["acme"]);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  const script = recorded();
  await reaches(query, (await on.write(script.events)).at(-1) ?? 0);
  expect(await sums(database)).toEqual([
    { artifact: "api", developers: ["alice"], builds: 3, failed: 0, p50: 400 },
    { artifact: "web", developers: ["alice"], builds: 3, failed: 1, p50: 2_000 },
  ]);
  const marks = [script.add(mark(old, true)), script.add(mark(secret, false))];
  await reaches(query, (await on.write(marks)).at(-1) ?? 0);
  const after = [
    { artifact: "api", developers: ["", "alice"], builds: 2, failed: 0, p50: 400 },
    { artifact: "web", developers: ["", "alice"], builds: 2, failed: 1, p50: 2_000 },
  ];
  const areKept = async () => {
    expect(await sums(database)).toEqual(after);
    const { rows } = await sql<{ session: string }>`select distinct session from operations`.execute(database.db);
    expect(rows).toEqual([{ session: young }]);
    const { items } = await ask.buildStats({ group: ["artifact"] });
    expect(items.map(({ count, failed }) => [Number(count), Number(failed)])).toEqual([
      [2, 0],
      [2, 1],
    ]);
    expect((await ask.buildStats({ group: ["developer"] })).items).toHaveLength(1);
    expect((await ask.listSessions()).items.map(({ session }) => session)).toEqual([young]);
  };
  await areKept();
  const { databaseUrl } = on;
  const options = { databaseUrl, logs: logs.logs, views: views({ textRows: false }), signal };
  expect(await rebuildWorkspace({ ...options, workspace: "acme" })).toBe(true);
  await areKept();
  expect(await rebuild(options)).toBe(true);
  await areKept();

  // One that is imported again counts once.
  const again = recorded().events.filter(({ session }) => session === old);
  const more = again.map((event) => script.add({ ...event, kind: event.kind }));
  await reaches(query, (await on.write(more)).at(-1) ?? 0);
  expect((await sums(database)).map(({ builds, failed }) => [builds, failed])).toEqual([
    [2, 0],
    [2, 1],
  ]);
});

it("builds of a session that expires during a rebuild stay counted as the live tables have counted them", async ({
  signal,
}) => {
  await using on = await stage();
  await using logs = await streams(on, ["acme"]);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await using query = await on.startQuery();
  const builds = 10;
  const script = scenario();
  script.add({ kind: "source.added" });
  for (const id of [old, secret]) {
    const session = script.session(id);
    session.started();
    session.loopStarted();
    const began = id === old ? 1_000 : 100_000;
    for (let build = 0; build < builds; build += 1) {
      session.build("web", "started", began + build * 4_000);
      session.build("web", "succeeded", began + build * 4_000 + 2_000);
    }
    session.ended();
  }
  const seqs = await on.write(script.events);
  await reaches(query, seqs.at(-1) ?? 0);
  const options = { databaseUrl: on.databaseUrl, logs: logs.logs, views: views({ textRows: false }) };
  const jsm = await jetstreamManager(logs.nats);

  /** Stops a rebuild when it has some of the builds, and expires the session. */
  const expireMeanwhile = async (
    session: string,
    stopped: (one: Omit<Rebuild, "views" | "databaseUrl" | "logs">) => Promise<boolean>,
  ) => {
    const seqsOf = seqs.filter((_, index) => script.events[index]?.session === session);
    const halfway = endOf(seqsOf[3] ?? 0);
    const stop = new AbortController();
    const onProgress = ({ position }: { readonly position: Offset }) => position >= halfway && stop.abort();
    const limits = { events: 1, bytes: 1_000_000 };
    expect(await stopped({ limits, onProgress, signal: stop.signal })).toBe(false);
    await reaches(query, (await on.write([script.add(mark(session, true))])).at(-1) ?? 0);
    for (const seq of seqsOf) await jsm.streams.deleteMessage(streamOf("acme"), seq);
    return sums(database);
  };
  const first = await expireMeanwhile(old, (one) => rebuild({ ...options, ...one }));
  expect(await rebuild({ ...options, signal })).toBe(true);
  expect(await sums(database)).toEqual(first);
  const second = await expireMeanwhile(secret, (one) => rebuildWorkspace({ ...options, ...one, workspace: "acme" }));
  expect(await rebuildWorkspace({ ...options, workspace: "acme", signal })).toBe(true);
  expect(await sums(database)).toEqual(second);
  expect(second.map((one) => one.builds)).toEqual([2 * builds]);
});
