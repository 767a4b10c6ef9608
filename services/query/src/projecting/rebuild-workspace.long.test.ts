import { once } from "node:events";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { spawnQuery } from "../testing/child.ts";
import { queryClient } from "../testing/client.ts";
import { migrated } from "../testing/migrated.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { writeTogether } from "../testing/scenario.ts";
import { schemas, stage } from "../testing/stage.ts";
import { projectAlone, streams } from "../testing/streams.ts";
import { contents, differencesOf } from "../testing/tables.ts";

const both = ["acme", "globex"];

/** Two workspaces whose logs grow, and a query of both that is killed and started again. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const logs = stack.use(await streams(on, both));
  const database = stack.use(openDatabase({ url: on.databaseUrl, connections: 2 }));
  // An erasure is applied at once by those who follow, and before its session by those who read later.
  const lasting = randomEvents(seeded(12), 4_500).filter(({ kind }) => kind !== "session.erased");
  const events = Map.groupBy(lasting, ({ source }) => source.split("/")[0] ?? "");
  const all = new Map(both.map((workspace) => [workspace, logs.log(workspace)]));
  const owned = stack.move();
  return {
    on,
    database,
    all,
    /** False: there are no events left. */
    async writeSome(count: number) {
      for (const workspace of both)
        await writeTogether(logs.log(workspace), events.get(workspace)?.splice(0, count) ?? [], 5);
      return [...events.values()].some((left) => left.length > 0);
    },
    async reached() {
      const ends = [...all].map(async ([workspace, { reader }]) => [workspace, (await reader.bounds()).lastOffset]);
      const expected = Object.fromEntries(await Promise.all(ends)) as Readonly<Record<string, number>>;
      const isThere = async () => {
        const found = await database.db.selectFrom("checkpoint").select(["workspace", "position"]).execute();
        return found.length === both.length && found.every((row) => row.position >= (expected[row.workspace] ?? 0));
      };
      await until(isThere, { message: "the tables of both to reach the ends" });
    },
    async spoiled() {
      const { rows } = await sql<{ workspace: string }>`
        select distinct workspace from operations where error = 'spoiled'`.execute(database.db);
      return rows.map(({ workspace }) => workspace);
    },
    async startQuery() {
      const child = spawnQuery(on);
      const [message] = (await once(child.process, "message")) as [{ addresses: { grpc: string } }];
      const ask = queryClient(message.addresses.grpc);
      return {
        ...child,
        rebuild: () => ask.rebuild("acme"),
        async [Symbol.asyncDispose]() {
          ask[Symbol.dispose]();
          await child.kill();
        },
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

it("a rebuild of one workspace is killed while another is recorded: both have all, once", async () => {
  await using on = await harness();
  const { database } = on;
  await on.writeSome(800);
  {
    await using query = await on.startQuery();
    await on.reached();
    await sql`update operations set error = 'spoiled' where kind = 'loop' and workspace = 'acme'`.execute(database.db);

    // Killed when it has read a part.
    const refused = expect(query.rebuild()).rejects.toMatchObject({ code: "not_ready" });
    await until(async () => (await schemas(on.on.databaseUrl)).includes("tapedeck_rebuild"), {
      message: "new tables beside the live ones",
    });
    await on.writeSome(50);
    await query.kill();
    await refused;
  }
  {
    await using query = await on.startQuery();
    await on.writeSome(50);
    await on.reached();
    expect(await on.spoiled()).toEqual(["acme"]);

    // Killed when it has replaced a part of the rows.
    await database.db.transaction().execute(async (tx) => {
      await sql`lock table fold_states in share mode`.execute(tx);
      const refused = expect(query.rebuild()).rejects.toMatchObject({ code: "not_ready" });
      const isReplacing = async () => {
        const { rows } = await sql`
          select 1 from pg_locks where not granted and relation = 'tapedeck_internal.fold_states'::regclass`.execute(
          tx,
        );
        return rows.length > 0;
      };
      await until(isReplacing, { message: "the live rows to be replaced" });
      await query.kill();
      await refused;
    });
  }
  await using query = await on.startQuery();
  expect(await on.spoiled()).toEqual(["acme"]);
  const rebuilding = query.rebuild();
  while (await on.writeSome(20));
  await rebuilding;
  await on.reached();
  expect(await on.spoiled()).toEqual([]);

  await using straight = await freshDatabase(migrated);
  await projectAlone(straight.url, on.all);
  expect(differencesOf(await contents(on.on.databaseUrl), await contents(straight.url))).toEqual([]);
  expect(await schemas(on.on.databaseUrl)).toEqual(["tapedeck", "tapedeck_internal"]);
});
