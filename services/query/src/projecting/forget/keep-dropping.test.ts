import { silentLogger } from "@tapedeck/shared/service/logger";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { Pipelines } from "../../db/pipelines.ts";
import { randomEvents, seeded } from "../../testing/random-scenario.ts";
import { writeTogether } from "../../testing/scenario.ts";
import { schemas, stage } from "../../testing/stage.ts";
import { projectAlone, streams } from "../../testing/streams.ts";
import { views } from "../../views/views.ts";
import { type RebuiltBatch, rebuild } from "../rebuild.ts";
import { dropForsaken } from "../swap.ts";
import { keepDropping } from "./keep-dropping.ts";
import { deleteWorkspace, forgetWorkspace } from "./workspace.ts";

const live = ["tapedeck", "tapedeck_internal"];

it("tables of an interrupted rebuild go with a workspace that they have, and hidden rows are reported", async ({
  signal,
}) => {
  await using on = await stage();
  const events = Map.groupBy(randomEvents(seeded(8), 600), ({ source }) => source.split("/")[0] ?? "");
  const both = ["acme", "globex"];
  await using logs = await streams(on, both);
  for (const workspace of both) await writeTogether(logs.log(workspace), events.get(workspace) ?? [], 5);
  await projectAlone(on.databaseUrl, new Map(both.map((workspace) => [workspace, logs.log(workspace)])));
  const first = new AbortController();
  const options = { databaseUrl: on.databaseUrl, logs: logs.logs, views: views({ textRows: false }) };
  const limits = { events: 10, bytes: 1_000_000 };
  const begun = new Set<string>();
  const onProgress = ({ workspace, events: applied }: RebuiltBatch) =>
    begun.add(workspace).size === both.length && applied > 0 && first.abort();
  expect(await rebuild({ ...options, limits, onProgress, signal: first.signal })).toBe(false);
  await using database = openDatabase({ url: on.databaseUrl, connections: 2 });
  await dropForsaken(database);
  const left = [...live, "tapedeck_rebuild", "tapedeck_rebuild_internal"];
  expect(await schemas(on.databaseUrl)).toEqual(left);

  await forgetWorkspace(database.db, "globex");
  const removed = new Set<string>();
  const stop = new AbortController();
  const onRemoved = (workspace: string) => removed.add(workspace);
  const dropping = keepDropping(database, { everyMs: 5, onRemoved, logger: silentLogger, signal: stop.signal });
  await until(() => removed.size > 0, { message: "the hidden rows to be found" });
  await until(async () => (await schemas(on.databaseUrl)).length === live.length, { message: "the tables to go" });
  stop.abort();
  await dropping;
  expect([...removed]).toEqual(["globex"]);
  await using pipelines = new Pipelines(database, 1);
  await deleteWorkspace(pipelines.lane(), "globex", signal);
  expect(await schemas(on.databaseUrl)).toEqual(live);
});
