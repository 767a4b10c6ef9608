import { ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { ProjectedPosition } from "../../projecting/progress.ts";
import { rebuild } from "../../projecting/rebuild.ts";
import { logsIn } from "../../testing/logs.ts";
import { projectUntil } from "../../testing/run-projection.ts";
import { scenario } from "../../testing/scenario.ts";
import { type Stage, stage } from "../../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";
import { folds } from "../../views/folds.ts";
import { views } from "../../views/views.ts";
import { stateReader } from "./read-state.ts";

/** More than two pages. */
const jobCount = 450;

/** A Vagrant server with machines and many jobs, and a reader of its state with one connection to the tables. */
async function recorded(on: Stage) {
  const script = scenario(vagrantShop);
  const server = vagrantSession("01A", script);
  server.began();
  server.reported("project", "P1", { name: "shop" });
  for (let n = 1; n <= jobCount; n++) server.queued(ulid(n));
  const project = async (from: number) => {
    const last = (await on.write(script.events.slice(from))).at(-1) ?? 0;
    await projectUntil(on.databaseUrl, on.log.reader, last);
  };
  await project(0);
  const database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const deps = {
    workspace: "acme",
    database: () => database,
    log: () => on.log.reader,
    progress: new ProjectedPosition(),
    folds,
  };
  const read = stateReader(folds);
  return {
    database,
    read: (more: Partial<ReadStateRequest> = {}) =>
      read(
        deps,
        ReadStateRequest.fromPartial({ workspace: "acme", source: vagrantShop, collection: "vagrant.jobs", ...more }),
        { signal: new AbortController().signal },
      ),
    async erase() {
      const before = script.events.length;
      script.add({ kind: "session.erased", session: "01A", subject: "01A" });
      await project(before);
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

type Answer = ReturnType<Awaited<ReturnType<typeof recorded>>["read"]>;

async function headOf(answer: Answer) {
  const { value } = await answer.next();
  return value?.body?.$case === "head" ? value.body.value : undefined;
}

async function countRest(answer: Answer): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const { body } of answer) {
    if (body?.$case === "row") counts[body.value.collection] = (counts[body.value.collection] ?? 0) + 1;
  }
  return counts;
}

it("all collections are of one moment, also where their session is erased before they are read", async () => {
  await using on = await stage();
  await using server = await recorded(on);
  const answer = server.read({ collection: "vagrant.projects", also: ["vagrant.jobs", "vagrant.job_spans"] });
  expect(await headOf(answer)).toMatchObject({ session: "01A" });
  await server.erase();
  expect(await countRest(answer)).toEqual({
    "vagrant.projects": 1,
    "vagrant.jobs": jobCount,
    "vagrant.job_spans": jobCount,
  });
  const later = server.read();
  expect(await headOf(later)).toMatchObject({ session: "" });
  expect(await countRest(later)).toEqual({});
});

it("the tables are swapped after an answer that reads them, not within it", async ({ signal }) => {
  await using on = await stage();
  await using server = await recorded(on);
  await using other = openDatabase({ url: on.databaseUrl, connections: 1 });
  // The second time the folded state is held, and the tables are asked for little.
  await countRest(server.read());
  const answer = server.read();
  await headOf(answer);
  let isSwapped = false;
  const rebuilding = rebuild({
    databaseUrl: on.databaseUrl,
    logs: logsIn(on.log.reader),
    views: views({ textRows: false }),
    signal,
  }).then(() => {
    isSwapped = true;
  });
  const waiting = async () => {
    const { rows } = await sql`
      select from pg_locks where not granted and relation = 'tapedeck_private.swap'::regclass`.execute(other.db);
    return rows.length > 0;
  };
  await until(waiting, { message: "the swap to wait" });
  expect(isSwapped).toBe(false);
  expect(await countRest(answer)).toEqual({ "vagrant.jobs": jobCount });
  await rebuilding;
  expect(await countRest(server.read())).toEqual({ "vagrant.jobs": jobCount });
});

it("a snapshot ends with its answer, with a reader that leaves, and with an error", async () => {
  await using on = await stage();
  await using server = await recorded(on);
  const isFree = async () => (await sql<{ n: number }>`select 1 as n`.execute(server.database.db)).rows[0]?.n;
  await Array.fromAsync(server.read());
  expect(await isFree()).toBe(1);
  for await (const { body } of server.read()) if (body?.$case === "row") break;
  expect(await isFree()).toBe(1);
  await expect(headOf(server.read({ source: "acme/bob/shop/vagrant" }))).rejects.toMatchObject({
    code: "unknown_source",
  });
  expect(await isFree()).toBe(1);
});
