import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { searchSeed } from "@tapedeck/shared/testing/searches";
import { describe, expect, it } from "vitest";
import { listOperations } from "../../api/list-operations.ts";
import { openDatabase } from "../../db/database.ts";
import { atAnyPosition, readDeps, readRows, testHistory } from "../../testing/history-tests.ts";
import { randomHost } from "../../testing/random-host.ts";
import { rktHost, rktSession } from "../../testing/rkt-scenario.ts";
import { rktOrder, rows } from "../../testing/tables.ts";
import { stateItems } from "../states/fold.ts";
import { rkt } from "./fold.ts";

describe("whatever a host goes through", () => {
  const reported = testHistory({
    source: rktHost,
    order: rktOrder,
    spoiled: ["rkt_pods"],
    report(script, session, random) {
      const host = rktSession(session, script);
      host.began();
      randomHost(random, script, host, session === "first" ? 1_500 : 200);
      if (session !== "last") host.ended();
    },
  });

  it(`rows that are not gone are those of the state (seed ${searchSeed})`, async () => {
    const { on, events } = reported();
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    for (const session of ["first", "last"]) {
      const state = fold(events.filter((event) => event.session === session));
      const there = async (table: string, column: string) =>
        (await rows(database, table, column)).filter((row) => row.session === session && !row.gone);
      const ids = (name: string) => stateItems(rkt, name, state)?.map(({ key }) => key);
      expect((await there("rkt_pods", "pod")).map((row) => row.pod)).toEqual(ids("pods"));
      expect((await there("rkt_images", "image")).map((row) => row.image)).toEqual(ids("images")?.toSorted());
    }
  });

  it(`runs of apps are listed with the codes that they ended with (seed ${searchSeed})`, async () => {
    const history = reported();
    await using database = openDatabase({ url: history.on.databaseUrl, connections: 2 });
    const request = ListRequest.fromPartial({ workspace: "acme", kinds: ["app"], limit: 1_000 });
    const { items } = await listOperations(readDeps(history, database), request);
    const codes = (await rows(database, "operations")).map(({ id, exit_code }) => [id, exit_code ?? undefined]);
    expect(items.map(({ exit_code }) => exit_code).filter((code) => (code ?? 0) !== 0)).not.toEqual([]);
    expect(codes).toEqual(expect.arrayContaining(items.map(({ id, exit_code }) => [id, exit_code])));
  });

  it(`state at any position is the fold of the session's events up to it (seed ${searchSeed})`, async () => {
    const history = reported();
    await atAnyPosition(history, async (at, session, known, database) => {
      const state = fold(known.filter((event) => event.session === session));
      for (const name of Object.keys(rkt.collections)) {
        const items = stateItems(rkt, name, state)?.map(({ key, bytes }) => ({ key, bytes: Buffer.from(bytes) }));
        const query = { source: rktHost, collection: `rkt.${name}`, session, at };
        expect(await readRows(history, database, query)).toEqual(items);
      }
    });
  });
});

function fold(events: readonly Event[]): unknown {
  return events.reduce((state, event) => rkt.evolve(state, event), rkt.initial);
}
