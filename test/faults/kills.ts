import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Filter } from "@tapedeck/shared/filter/filter";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { Client } from "pg";
import { expect } from "vitest";
import { startRemoteTap } from "../harness/remote-tap.ts";
import { withTokens } from "../stack/token-stack.ts";
import { lastingTables } from "./lasting-tables.ts";
import { openTestLog, type Part, type Processes, parts, startProcesses } from "./processes.ts";
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
  /** The number of its recording. */
  readonly tape: number;
  readonly recording: RecordedUpstream;
  readonly source: SourceName;
  readonly fake: FakeSkaffold;
};

/** Those beside the one of ingest's own sources. Their taps push over the gateway. */
const otherWorkspaces = ["acme", "globex"];

/** What the test knows of a workspace. */
type KilledWorkspace = {
  readonly workspace: string;
  readonly log: LogReader;
  readonly token: string;
};

/**
 * Plays recordings through one Tapedeck, undisturbed as developer "calm", and then as "wild", in several workspaces at
 * once, with kill -9 of its parts at random moments. Compares the wild records with the calm ones, and the subscribers'
 * events with the log of their workspace.
 */
export async function killsLeaveNoTrace({ recordings, speed, killsOfEach }: KillsOptions): Promise<void> {
  const random = seeded("kills");
  await using cleanup = new AsyncDisposableStack();
  const tapes = recordings.map((folder) => loadRecording(join(fixtures, folder)));
  const calm = await Promise.all(tapes.map((_, index) => playing("calm", index, "max")));
  const own = await Promise.all(tapes.map((_, index) => playing("wild", index, speed)));
  const stack = cleanup.use(
    await startProcesses(
      [...calm, ...own].map(({ source, fake, project }) => ({
        developer: sourceParts(source).developer,
        project,
        address: fake.address,
      })),
      withTokens,
    ),
  );
  const nats = cleanup.adopt(await connectThroughRestarts(stack.nats), (nc) => nc.close());
  const tokens = await openTokenStore(nats);
  const tokenOf = async (workspace: string) => {
    const made = makeToken({
      name: workspace,
      workspace,
      roles: ["recorder", "viewer"],
      developer: "wild",
      lifetimeMs,
    });
    await tokens.create(made);
    return made.text;
  };
  const first = { workspace: "default", log: stack.log, token: await tokenOf("default") };

  await Promise.all(calm.map(({ fake }) => fake.play()));
  await recordedToTheEnd(stack, [first], calm);

  const others = await Promise.all(
    otherWorkspaces.map(async (workspace) => {
      const { reader } = cleanup.use(await openTestLog(stack.nats, workspace));
      return { workspace, log: reader, token: await tokenOf(workspace) };
    }),
  );
  const beside = await Promise.all(
    others.map(async ({ workspace, token }, index) => {
      const one = await playing("wild", index % tapes.length, speed, workspace);
      const { fake, project } = one;
      const tap = { grpc: stack.grpc, token, address: fake.address, developer: "wild", project };
      cleanup.use(await startRemoteTap(tap));
      return one;
    }),
  );
  const wild = [...own, ...beside];
  const workspaces = [first, ...others];

  const everything: Filter = { developers: ["wild"] };
  const builds: Filter = { ...everything, kinds: ["build.*", "loop.*", "session.*"] };
  const sockets = workspaces.map(({ token }) => cleanup.use(socketSubscriber(stack.http, everything, token)));
  const sse = cleanup.use(
    sseSubscriber(
      stack.http,
      [["developer", "wild"], ...(builds.kinds ?? []).map((kind) => ["kind", kind] as const)],
      first.token,
    ),
  );
  const listened = wild[0] as Playing;
  const events = cleanup.use(
    eventsSubscriber(
      stack.grpc,
      "/proto.v2.SkaffoldV2Service/Events",
      listened.source,
      eventPosition(stack.log.epoch, 0),
      first.token,
    ),
  );

  const frames = () => wild.reduce((sum, { fake: { played } }) => sum + played.v1 + played.v2 + played.logs, 0);
  const total = wild.reduce((sum, { recording: { messages } }) => sum + framesIn(messages), 0);
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
  await listeningAgain(stack, own);
  await recordedToTheEnd(stack, workspaces, wild);

  for (const one of wild) await compare(stack, workspaces, calm[one.tape] as Playing, one);
  for (const [index, { log }] of workspaces.entries())
    await sawTheLog(log, sockets[index] as (typeof sockets)[number], everything);
  await sawTheLog(stack.log, sse, builds);
  const recorded = [...calm, ...wild].map(({ source }) => source).toSorted();
  for (const { workspace, log } of workspaces) {
    const sources = recorded.filter((source) => sourceParts(source).workspace === workspace);
    expect(await sourcesIn(log), workspace).toEqual(sources);
  }
  expect(await sourcesInTables(stack.database)).toEqual(recorded);
  const recordedFrames = framesOf(await sourceEvents(stack.log, listened.source)(), "v2");
  await until(() => events.seen.length >= recordedFrames.length, { message: "gRPC Events to have given all" });
  expect(events.differing).toEqual([]);
  expect(events.seen).toEqual(recordedFrames);
  // Checks that they were in fact cut.
  for (const { connections } of [...sockets, events]) expect(connections()).toBeGreaterThan(killsOfEach);
  console.log(
    `kills: ${victims.length} (${victims.join(" ")}), ${total} frames, ${sequenceOf((await stack.log.bounds()).lastOffset)} events in the log, ` +
      sockets.map(({ seen, connections }) => `${seen.length} seen over ${connections()} sockets`).join(", "),
  );

  async function playing(developer: string, tape: number, pace: number | "max", workspace = "default") {
    const project = `tape-${tape}`;
    const recording = tapes[tape] ?? expect.fail(`no recording ${tape}`);
    // The real Skaffold, and so the fake, may hang for ever when a reader leaves during its replay, as a killed ingest
    // does. That is a fact about Skaffold; here it would end the test before it has shown anything about Tapedeck.
    const fake = cleanup.use(await startFakeSkaffold({ recording, speed: pace, leavingInReplayHangs: false }));
    const source = skaffoldSource(developer, project, workspace);
    return { project, tape, recording, source, fake };
  }
}

const lifetimeMs = 3_600_000;

const framesIn = ({ v1, v2, logs }: RecordedUpstream["messages"]) => v1.length + v2.length + logs.length;

/** The sources of all events in a log, in alphabetical order. */
async function sourcesIn(log: LogReader): Promise<readonly string[]> {
  const { lastOffset } = await log.bounds();
  const sources = new Set<string>();
  const range = { afterOffset: logStart, subjects: [] };
  for await (const { event } of log.history(range, lastOffset, AbortSignal.timeout(60_000))) sources.add(event.source);
  return [...sources].toSorted();
}

/** A process's end can't be noticed without a listening tap: kills once more, and waits for the taps of ingest. */
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
async function recordedToTheEnd(
  { database }: Processes,
  workspaces: readonly KilledWorkspace[],
  tapes: readonly Playing[],
): Promise<void> {
  for (const { source, recording, fake } of tapes) {
    const events = sourceEvents(logOf(workspaces, source), source);
    for (const channel of ["v1", "v2"] as const) {
      const expected = recording.messages[channel].length;
      const isThere = async () => {
        const there = framesOf(await events(), channel).length;
        if (there !== expected) throw new Error(`${there} of ${expected}`);
        return true;
      };
      await until(isThere, { message: `${channel} of ${source}` });
    }
    // Facts that only GetState reports come a moment after a loop's end: some of them must have come.
    for (const api of new Set(recording.states.map((state) => state.api))) {
      const isDescribed = async () => describes(await events(), api);
      await until(isDescribed, { message: `GetState of ${api} of ${source}` });
    }
    await fake.end("kill");
    await until(async () => kindsOf(await events()).includes("session.ended"), { message: `the end of ${source}` });
  }
  for (const { workspace, log } of workspaces) {
    const { lastOffset } = await log.bounds();
    const isThere = async () => (await foldedUpTo(database, workspace)) >= lastOffset;
    await until(isThere, { message: `the tables of ${workspace} to reach the end` });
  }
}

function logOf(workspaces: readonly KilledWorkspace[], source: SourceName): LogReader {
  const found = workspaces.find(({ workspace }) => workspace === sourceParts(source).workspace);
  return (found ?? expect.fail(`no log of ${source}`)).log;
}

function describes(events: readonly RecordedEvent[], api: string): boolean {
  return events.some(
    ({ event: { kind, detail } }) =>
      kind === "session.described" && detail?.$case === "session_detail" && (detail.value.states[api]?.length ?? 0) > 0,
  );
}

async function foldedUpTo(database: string, workspace: string): Promise<number> {
  const checkpoint = "select position from tapedeck_internal.checkpoint where workspace = $1";
  const [row] = await rowsOf<{ position: string }>(database, checkpoint, [workspace]);
  return Number(row?.position ?? 0);
}

/** The sources of all rows of sources and events, in alphabetical order. */
async function sourcesInTables(database: string): Promise<readonly string[]> {
  const all = "select source from tapedeck.sources union select source from tapedeck.events";
  return (await rowsOf<{ source: string }>(database, all)).map(({ source }) => source).toSorted();
}

async function rowsOf<Row extends object>(database: string, text: string, values: readonly string[] = []) {
  const client = new Client(database);
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

async function compare(
  stack: Processes,
  workspaces: readonly KilledWorkspace[],
  calm: Playing,
  wild: Playing,
): Promise<void> {
  const eventsOf = ({ source }: Playing) => sourceEvents(logOf(workspaces, source), source)();
  const [before, after] = [await eventsOf(calm), await eventsOf(wild)];
  const { recording } = wild;
  const name = `${recording.name} in ${sourceParts(wild.source).workspace}`;
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
