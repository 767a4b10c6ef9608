import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Filter } from "@tapedeck/shared/filter/filter";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { expect } from "vitest";
import { lastingTables } from "./lasting-tables.ts";
import { type Part, type Processes, parts, startProcesses } from "./processes.ts";
import { framesOf, gapsOf, holes, kindsOf, lasting, skaffoldSource, sourceEvents } from "./recorded-events.ts";
import { eventsSubscriber, sawTheLog, socketSubscriber, sseSubscriber } from "./subscribers.ts";

const fixtures = recordings.skaffold;

export type KillsOptions = {
  /** Folders; all are played at once. */
  readonly recordings: readonly string[];
  /** How much faster than recorded. */
  readonly speed: number;
  /** The number of kills of each part. */
  readonly killsOfEach: number;
};

type Playing = {
  readonly project: string;
  readonly recording: RecordedUpstream;
  readonly source: SourceName;
  readonly fake: FakeSkaffold;
};

/**
 * Plays recordings twice through one Tapedeck: undisturbed as developer "calm", then as "wild" with kill -9 of its
 * parts at random moments. Compares the second record with the first, and the subscribers' events with the log.
 */
export async function killsLeaveNoTrace({ recordings, speed, killsOfEach }: KillsOptions): Promise<void> {
  const random = seeded("kills");
  await using cleanup = new AsyncDisposableStack();
  const tapes = recordings.map((folder) => loadRecording(join(fixtures, folder)));
  const calm = await Promise.all(tapes.map((tape, index) => playing("calm", tape, index, "max")));
  const wild = await Promise.all(tapes.map((tape, index) => playing("wild", tape, index, speed)));
  const stack = cleanup.use(
    await startProcesses(
      [...calm, ...wild].map(({ source, fake, project }) => ({
        developer: source.split("/")[1] ?? "",
        project,
        address: fake.address,
      })),
    ),
  );

  await Promise.all(calm.map(({ fake }) => fake.play()));
  await recordedToTheEnd(stack, calm);

  const everything: Filter = { developers: ["wild"] };
  const builds: Filter = { ...everything, kinds: ["build.*", "loop.*", "session.*"] };
  const socket = cleanup.use(socketSubscriber(stack.http, everything));
  const sse = cleanup.use(
    sseSubscriber(stack.http, [["developer", "wild"], ...(builds.kinds ?? []).map((kind) => ["kind", kind] as const)]),
  );
  const listened = wild[0] as Playing;
  const events = cleanup.use(
    eventsSubscriber(
      stack.grpc,
      "/proto.v2.SkaffoldV2Service/Events",
      listened.source,
      eventPosition(stack.log.epoch, 0),
    ),
  );

  const frames = () => wild.reduce((sum, { fake: { played } }) => sum + played.v1 + played.v2 + played.logs, 0);
  const total = tapes.reduce((sum, { messages: { v1, v2, logs } }) => sum + v1.length + v2.length + logs.length, 0);
  const victims = random.shuffled(parts.flatMap((part) => Array<Part>(killsOfEach).fill(part)));
  const killPoints = victims.map(() => random.below(total)).sort((a, b) => a - b);
  const played = Promise.all(wild.map(({ fake }) => fake.play()));
  const restarted = new Map<Part, Promise<void>>();
  for (const [index, victim] of victims.entries()) {
    await until(() => frames() >= (killPoints[index] ?? 0), { message: `${killPoints[index]} of ${total} frames` });
    // Other parts may still be restarting: parts that die together must come back together too.
    await restarted.get(victim);
    restarted.set(victim, stack.kill(victim));
  }
  await Promise.all([...restarted.values()]);
  await played;
  expect(wild.flatMap(({ fake }) => fake.hung)).toEqual([]);
  await listeningAgain(stack, wild);
  await recordedToTheEnd(stack, wild);

  for (const [index, tape] of tapes.entries())
    await compare(stack, tape, calm[index] as Playing, wild[index] as Playing);
  await sawTheLog(stack.log, socket, everything);
  await sawTheLog(stack.log, sse, builds);
  const recordedFrames = framesOf(await sourceEvents(stack.log, listened.source)(), "v2");
  await until(() => events.seen.length >= recordedFrames.length, { message: "gRPC Events to have given all" });
  expect(events.differing).toEqual([]);
  expect(events.seen).toEqual(recordedFrames);
  // Checks that they were in fact cut.
  for (const { connections } of [socket, events]) expect(connections()).toBeGreaterThan(killsOfEach);
  console.log(
    `kills: ${victims.length} (${victims.join(" ")}), ${total} frames, ${sequenceOf((await stack.log.bounds()).lastOffset)} events in the log, ` +
      `${socket.seen.length} seen over ${socket.connections()} sockets`,
  );

  async function playing(developer: string, recording: RecordedUpstream, index: number, pace: number | "max") {
    const project = `tape-${index}`;
    // The real Skaffold, and so the fake, may hang for ever when a reader leaves during its replay, as a killed ingest
    // does. That is a fact about Skaffold; here it would end the test before it has shown anything about Tapedeck.
    const fake = cleanup.use(await startFakeSkaffold({ recording, speed: pace, leavingInReplayHangs: false }));
    return { project, recording, source: skaffoldSource(developer, project), fake };
  }
}

/** A process's end can't be noticed without a listening tap: kills once more, and waits for all taps. */
async function listeningAgain({ log, services: { ingest } }: Processes, tapes: readonly Playing[]): Promise<void> {
  const connections = async ({ source }: Playing) =>
    kindsOf(await sourceEvents(log, source)()).filter((kind) => kind === "upstream.connected").length;
  // The test's own connection to a log that was just killed reconnects by itself.
  const connectionsOnceReadable = (tape: Playing) =>
    until(async () => ({ count: await connections(tape) }), { message: `the log of ${tape.source}` });
  await ingest.kill();
  const before = await Promise.all(tapes.map(connectionsOnceReadable));
  await ingest.start();
  for (const [index, tape] of tapes.entries()) {
    const isBack = async () => (await connections(tape)) > (before[index]?.count ?? 0);
    await until(isBack, { message: `the tap of ${tape.source} to be back` });
  }
}

/**
 * Waits until all that can't get lost is in the log; then ends the process, and waits until the tables hold all of it
 * too.
 */
async function recordedToTheEnd(stack: Processes, tapes: readonly Playing[]): Promise<void> {
  for (const { source, recording, fake } of tapes) {
    const events = sourceEvents(stack.log, source);
    for (const channel of ["v1", "v2"] as const) {
      const expected = recording.messages[channel].length;
      const isThere = async () => {
        const there = framesOf(await events(), channel).length;
        if (there !== expected) throw new Error(`${there} of ${expected}`);
        return true;
      };
      await until(isThere, { message: `${channel} of ${source}`, deadlineMs: 60_000 });
    }
    // Facts that only GetState reports come a moment after a loop's end: some of them must have come.
    for (const api of new Set(recording.states.map((state) => state.api))) {
      const isDescribed = async () => describes(await events(), api);
      await until(isDescribed, { message: `GetState of ${api} of ${source}` });
    }
    await fake.end("kill");
    await until(async () => kindsOf(await events()).includes("session.ended"), { message: `the end of ${source}` });
  }
  const { lastOffset } = await stack.log.bounds();
  await until(async () => (await foldedUpTo(stack.database)) >= lastOffset, { message: "the tables to reach the end" });
}

function describes(events: readonly RecordedEvent[], api: string): boolean {
  return events.some(
    ({ event: { kind, detail } }) =>
      kind === "session.described" && detail?.$case === "session_detail" && (detail.value.states[api]?.length ?? 0) > 0,
  );
}

async function foldedUpTo(database: string): Promise<number> {
  const client = new Client(database);
  await client.connect();
  try {
    const { rows } = await client.query<{ position: string }>(
      "select max(position) as position from tapedeck_internal.checkpoint",
    );
    return Number(rows[0]?.position ?? 0);
  } finally {
    await client.end();
  }
}

async function compare(stack: Processes, recording: RecordedUpstream, calm: Playing, wild: Playing): Promise<void> {
  const [before, after] = [await sourceEvents(stack.log, calm.source)(), await sourceEvents(stack.log, wild.source)()];
  const { name } = recording;
  expect(holes(after), name).toEqual([]);
  expect(kindsOf(after).filter((kind) => kind === "session.started")).toHaveLength(1);
  for (const channel of ["v1", "v2"]) expect(lasting(after, channel), name).toEqual(lasting(before, channel));
  const [said, kept] = [framesOf(before, "logs"), framesOf(after, "logs")];
  // Skaffold forgets application logs at each loop's start: logs written during an outage may be lost, and the loss is
  // recorded. Before the session's start no tap could have noticed any.
  const begun = kindsOf(after).indexOf("session.started");
  const isMetLate =
    kindsOf(after)
      .slice(0, begun)
      .filter((kind) => kind === "upstream.connected").length > 1;
  const isLossy = isMetLate || gapsOf(after, "logs").length > 0;
  expect(kept, name).toEqual(isLossy ? said.filter((frame) => kept.includes(frame)) : said);
  const aside = {
    ...(isLossy && { lossyChannel: "logs" }),
    // Changes visible only in GetState (other clients' control calls, states that change without an event) are noticed
    // when it is called.
    sampled: [
      ...(recording.calls.length > 0 ? ["auto_trigger"] : []),
      ...(isLossy ? ["gaps"] : []),
      ...(changesSilently(recording) ? silentColumns : []),
    ],
  };
  const [tablesBefore, tablesAfter] = [
    await lastingTables(stack.database, calm.source, aside),
    await lastingTables(stack.database, wild.source, aside),
  ];
  expect(tablesAfter, name).toEqual(tablesBefore);
}

/**
 * Skaffold resets its state without an event when an old version begins a loop, and at an Execute that finds nothing to
 * do: after the last event it may answer different states. Tapedeck adopts the answer that it gets, if there is time.
 */
function changesSilently({ states, messages }: RecordedUpstream): boolean {
  return (["v1", "v2"] as const).some((api) => {
    const last = states.filter((state) => state.api === api && state.seenBefore === messages[api].length);
    return new Set(last.map(({ json }) => JSON.stringify(json))).size > 1;
  });
}

const silentColumns = ["skaffold_artifacts.status", "skaffold_phases.status", "skaffold_phases.status_code"];
