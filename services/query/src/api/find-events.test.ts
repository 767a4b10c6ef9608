import { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { endOf, logStart } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { ProjectedPosition } from "../projecting/progress.ts";
import { migrated } from "../testing/migrated.ts";
import { applyInBatches, inMessages } from "../testing/positions.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { folds } from "../views/folds.ts";
import type { ApiDeps } from "./deps.ts";
import { findEvents } from "./find-events.ts";
import { countingProxy } from "./testing/counting-proxy.ts";

it("a search takes three round trips to Postgres, and its end a fourth, whatever the filter", async () => {
  await using fresh = await freshDatabase(migrated);
  await using proxy = await countingProxy(fresh.url);
  await using database = openDatabase({ url: proxy.url, connections: 1 });
  const events = inMessages(randomEvents(seeded(3), 900), () => 4);
  await applyInBatches(database, events, () => 300);
  const last = endOf(Math.ceil(events.length / 4));
  await sql`insert into checkpoint (workspace, projection, epoch, position) values ('acme', 'event_positions.1', 'e', ${last})`.execute(
    database.db,
  );
  const log = () => expect.fail("the log was asked");
  const deps: ApiDeps = { workspace: "acme", database: () => database, log, progress: new ProjectedPosition(), folds };
  const find = (filter: Partial<ListRequest>, newest: boolean) =>
    findEvents(deps, {
      filter: { ...ListRequest.fromPartial({ workspace: "acme", limit: 50 }), ...filter },
      after: formatPosition({ epoch: "e", offset: logStart }),
      until: formatPosition({ epoch: "e", offset: last }),
      newest,
    });
  const filters: readonly Partial<ListRequest>[] = [
    {},
    { kinds: ["build.*"] },
    { subjects: ["web"] },
    { sessions: ["acme-alice-shop-skaffold-1"] },
  ];
  for (const filter of filters) {
    for (const newest of [true, false]) {
      // The session settings go along with the first search of a connection, and the end of the search before is over.
      await sql`select 1`.execute(database.db);
      proxy.turns = 0;
      const { positions } = await find(filter, newest);
      expect([positions.length, proxy.turns], JSON.stringify({ filter, newest })).toEqual([50, 3]);
      await sql`select 1`.execute(database.db);
      expect(proxy.turns).toBeLessThanOrEqual(5);
    }
  }
});
