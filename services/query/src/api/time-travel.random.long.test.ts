import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { endOf, indexOf, logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { searched } from "@tapedeck/shared/testing/searches";
import fc from "fast-check";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { queryClient } from "../testing/client.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { scenario, shop } from "../testing/scenario.ts";
import { reaches, stage } from "../testing/stage.ts";
import { rows } from "../testing/tables.ts";
import { evolve } from "../views/skaffold/evolve.ts";
import { initialState } from "../views/skaffold/state.ts";
import { toV1State } from "../views/skaffold/to-v1-state.ts";
import { toV2State } from "../views/skaffold/to-v2-state.ts";

it.each([1, 40])(
  "state at any position is the fold of the session's events up to it: %i a message",
  async (perMessage) => {
    await using on = await stage();
    // One long session, for snapshots, before others that begin, end and are erased.
    const long = scenario();
    const session = long.session("long");
    session.started();
    session.configured();
    for (let number = 0; number < 300; number += 1) {
      session.loopStarted();
      for (const artifact of ["web", "api"]) {
        session.build(artifact, "started");
        session.text(`building ${artifact}\n`);
        session.mirrored(artifact, "InProgress");
        session.build(artifact, number % 3 === 0 ? "failed" : "succeeded");
        session.mirrored(artifact, "Succeeded");
      }
      session.port(9_000 + (number % 5));
      session.loopEnded(number % 3 === 0 ? "failed" : "succeeded");
    }
    session.ended();
    const others = randomEvents(seeded(7), 1_500).filter(({ source }) => source !== shop && source.startsWith("acme/"));
    const events = [...long.events, ...others];
    const offsets = await on.writeTogether(events, perMessage);
    await using query = await on.startQuery();
    await reaches(query, sequenceOf(offsets.at(-1) ?? logStart));
    using ask = queryClient(query.address);
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    const snapshots = await rows(database, "snapshots");
    expect(snapshots.length).toBeGreaterThan(2);
    if (perMessage > 1)
      expect(new Set(snapshots.map(({ position }) => indexOf(position as Offset))).size).toBeGreaterThan(1);

    const recorded = events.map((event, index) => ({ event, offset: offsets[index] ?? logStart }));
    const erased = new Set(events.filter(({ kind }) => kind === "session.erased").map(({ session }) => session));
    const kept = recorded.filter(({ event }) => !erased.has(event.session));
    const fold = (of: Event, at: number) =>
      recorded
        .filter(({ event, offset }) => event.session === of.session && offset <= at)
        .reduce((state, { event }) => evolve(state, event), initialState);

    const inSession = kept.filter(({ event }) => event.session !== "");
    await fc.assert(
      fc.asyncProperty(fc.nat(inSession.length - 1), fc.nat(39), fc.boolean(), async (index, further, isEnd) => {
        const { event, offset } = inSession[index] ?? expect.fail();
        const of = offsets[Math.min(offsets.length - 1, offsets.indexOf(offset) + further)] ?? offset;
        const at = isEnd ? endOf(sequenceOf(of)) : of;
        const request = { source: event.source, session: event.session, at: on.written(at) };
        const state = fold(event, at);
        const v1 = await ask.readState(request);
        const v2 = await ask.readState({ ...request, collection: "skaffold.v2" });
        expect(v1.rows).toEqual([Buffer.from(toV1State(state))]);
        expect(v2.rows).toEqual([Buffer.from(toV2State(state))]);
      }),
      { numRuns: searched({ short: 100, long: 400 }) },
    );
  },
);
