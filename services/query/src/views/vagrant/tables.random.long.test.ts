import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Job, job_StateToJSON } from "@tapedeck/proto/vagrant/vagrant";
import { searchSeed } from "@tapedeck/shared/testing/searches";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { key } from "../../db/text.ts";
import { atAnyPosition, readRows, testHistory } from "../../testing/history-tests.ts";
import { randomServer } from "../../testing/random-server.ts";
import { rows, vagrantOrder } from "../../testing/tables.ts";
import { vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";
import { stateItems } from "../states/fold.ts";
import { vagrant } from "./fold.ts";

describe("whatever a server goes through", () => {
  const reported = testHistory({
    source: vagrantShop,
    order: vagrantOrder,
    spoiled: ["vagrant_targets", "vagrant_job_versions"],
    report(script, session, random) {
      const firstJob = { first: 0, erased: 1_000, last: 2_000 }[session];
      const server = vagrantSession(session, script);
      server.began();
      randomServer(random, script, server, { size: session === "first" ? 1_500 : 200, firstJob });
      if (session !== "last") server.ended();
    },
  });

  it(`rows that are not gone are those of the state (seed ${searchSeed})`, async () => {
    const { on, events } = reported();
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    for (const session of ["first", "last"]) {
      const state = fold(events.filter((event) => event.session === session));
      for (const name of ["targets", "projects", "bases", "boxes", "runners"]) {
        const there = (await rows(database, `vagrant_${name}`)).filter((row) => row.session === session && !row.gone);
        const items = stateItems(vagrant, name, state) ?? expect.fail();
        expect(new Map(there.map(({ id, message }) => [id, message]))).toEqual(
          new Map(items.map((item) => [key(item.key), Buffer.from(item.bytes)])),
        );
      }
    }
  });

  it(`state and jobs at any position follow from the events up to it (seed ${searchSeed})`, async () => {
    const history = reported();
    await atAnyPosition(history, async (at, session, known, database) => {
      const read = (name: string, of: string) =>
        readRows(history, database, { source: vagrantShop, collection: `vagrant.${name}`, session: of, at });
      const ofSession = known.filter((event) => event.session === session);
      const state = fold(ofSession);
      for (const name of Object.keys(vagrant.collections)) {
        const items = stateItems(vagrant, name, state)?.map((item) => ({
          key: item.key,
          bytes: Buffer.from(item.bytes),
        }));
        if (items !== undefined) expect(await read(name, session)).toEqual(items);
      }
      expect(await read("jobs", session)).toEqual(newestJobs(ofSession));
      expect(await read("jobs", "")).toEqual(newestJobs(known));
    });
  });
});

function fold(events: readonly Event[]): unknown {
  return events.reduce((state, event) => vagrant.evolve(state, event), vagrant.initial);
}

/** What was answered last of each, in the order of their ids. */
function newestJobs(events: readonly Event[]) {
  const reported = events.filter(({ original }) => original?.type === "hashicorp.vagrant.Job");
  const newest = new Map(reported.map(({ subject, original }) => [subject, original?.bytes]));
  return [...newest].map(([id, bytes]) => ({ key: id, bytes })).sort((a, b) => (a.key < b.key ? -1 : 1));
}

function _stateOf(message: Uint8Array): string {
  return job_StateToJSON(Job.decode(message).state);
}
