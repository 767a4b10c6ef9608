import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { pushItems, type RunningPush } from "@tapedeck/tap/push/push";
import { openSpill, type Spill } from "@tapedeck/tap/spill/spill";
import { connect } from "nats";
import { ulid } from "ulid";
import { expect, inject, it } from "vitest";
import { WorkspaceLink } from "../bench/frame/pushed-source.ts";
import { gapsOf, holes, kindsOf, sourceEvents } from "../faults/recorded-events.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { NatsCluster } from "./nats-cluster.ts";

const workspaces = Array.from({ length: 200 }, (_, at) => `team-${at}`);
const streams = workspaces.map(streamOf);
/** How long all sources together pause between two frames: 200 frames a second. */
const pauseMs = 5;
/** Only determines when a broken cluster is given up. */
const deadlineMs = 900_000;

/** A tap of one workspace: its frames wait in a spill and are pushed, as those of any tap. */
class Team implements AsyncDisposable {
  readonly workspace: string;
  readonly #spill: Spill;
  readonly #link: WorkspaceLink;
  readonly #pushing: RunningPush;
  readonly #connection = ulid();
  readonly #said: string[] = [];

  private constructor(workspace: string, spill: Spill, address: string) {
    this.workspace = workspace;
    this.#spill = spill;
    this.#link = new WorkspaceLink(address, workspace);
    this.#pushing = pushItems({
      link: this.#link.link,
      spill,
      control: async () => expect.fail("nobody controls it"),
      signal: new AbortController().signal,
      log: { info() {}, warn() {} },
    });
    this.#append({ $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } });
  }

  static async start(workspace: string, folder: string, address: string): Promise<Team> {
    const hello = { developer: "alice", project: "shop", upstream: "skaffold", tap: ulid(), labels: {}, redact: "off" };
    return new Team(workspace, await openSpill({ dir: join(folder, workspace), hello }), address);
  }

  say(): void {
    const entry = `${this.workspace} ${this.#said.length}`;
    this.#said.push(entry);
    const bytes = LogEntry.encode(LogEntry.fromPartial({ timestamp: timestampNow(), entry })).finish();
    this.#append({ $case: "frame", value: { channel: "v1", bytes: Buffer.from(bytes), more: false } });
  }

  /** Resolves when everything that was said until now is recorded. */
  async recorded(): Promise<void> {
    const last = this.#spill.state().nextIndex - 1n;
    const late = performance.now() + deadlineMs;
    while (this.#spill.state().committed < last) {
      if (performance.now() > late) throw new Error(`${this.workspace} is not recorded any more`);
      await delay(20);
    }
  }

  /** Checks that each frame is in the log once, in order. */
  async isRecordedOnce(nats: Awaited<ReturnType<typeof connect>>): Promise<void> {
    const { workspace } = this;
    await using log = await openLog(nats, { workspace, create: false, syncKnown: true, waitMs: 60_000 });
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    const events = await sourceEvents(log.reader, source)();
    const frames = events.filter(({ event }) => event.channel === "v1" && event.part === 0);
    const texts = frames.map(({ event }) => LogEntry.decode(event.original?.bytes ?? new Uint8Array()).entry);
    expect(texts, workspace).toEqual(this.#said);
    expect(gapsOf(events, "v1"), workspace).toEqual([]);
    expect(holes(events), workspace).toEqual([]);
    const sessions = kindsOf(events).filter((kind) => /^session\.(started|ended|lost)$/.test(kind));
    expect(sessions, workspace).toEqual(["session.started"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pushing.finish(0);
    this.#link[Symbol.dispose]();
    await this.#spill[Symbol.asyncDispose]();
  }

  #append(what: Parameters<Spill["append"]>[0]["what"]): void {
    this.#spill.append({ connection: this.#connection, at: timestampNow(), what });
  }
}

/** All of them talk, in turns, until it is disposed. */
class Talk implements Disposable {
  readonly #teams: readonly Team[];
  #turn = 0;
  #timer: ReturnType<typeof startTimer>;

  constructor(teams: readonly Team[]) {
    this.#teams = teams;
    this.#timer = startTimer(this.#next, pauseMs);
  }

  readonly #next = (): void => {
    this.#teams[this.#turn++ % this.#teams.length]?.say();
    this.#timer = startTimer(this.#next, pauseMs);
  };

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
  }
}

it("the log of a workspace begins on the servers, and with the copies, that its settings name", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder } = cleanup.use(await temporaryFolder());
  const nats = cleanup.use(await NatsCluster.start(await mkdtemp(join(inject("serversFolder"), "cluster-"))));
  const logs = [
    { workspaces: ["here"], placement: ["nats-2"] },
    { workspaces: ["safe-*"], replicas: 3, placement: ["test"] },
  ];
  const ingest = cleanup.use(
    await startServiceProcess("ingest", {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_NATS_LOGS: JSON.stringify(logs),
      TAPEDECK_NATS_SYNC_ALWAYS: "true",
      TAPEDECK_SOURCES: "[]",
      TAPEDECK_INGEST_SPILL_DIR: join(folder, "ingest"),
    }),
  );
  const connection = cleanup.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const jsm = await jetstreamManager(connection);
  for (const workspace of ["here", "safe-1", "other"]) {
    const team = cleanup.use(await Team.start(workspace, folder, ingest.addresses.grpc ?? ""));
    team.say();
    await team.recorded();
  }
  const placeOf = async (workspace: string) => {
    const { cluster } = await jsm.streams.info(streamOf(workspace));
    return { leader: cluster?.leader, others: (cluster?.replicas ?? []).length };
  };
  expect(await placeOf("here")).toEqual({ leader: "nats-2", others: 0 });
  expect(await placeOf("safe-1")).toMatchObject({ others: 2 });
  expect(await placeOf("other")).toMatchObject({ others: 0 });
});

it("two hundred workspaces on three nodes lose nothing when a node is lost and comes back", {
  timeout: 3_600_000,
}, async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder } = cleanup.use(await temporaryFolder());
  const nats = cleanup.use(await NatsCluster.start(await mkdtemp(join(inject("serversFolder"), "cluster-"))));
  const ingest = cleanup.use(
    await startServiceProcess("ingest", {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_NATS_REPLICAS: "3",
      TAPEDECK_NATS_SYNC_ALWAYS: "true",
      TAPEDECK_SOURCES: "[]",
      TAPEDECK_INGEST_SPILL_DIR: join(folder, "ingest"),
    }),
  );
  const start = (workspace: string) => Team.start(workspace, folder, ingest.addresses.grpc ?? "");
  const teams = await Promise.all(workspaces.map(start));
  for (const team of teams) cleanup.use(team);
  const all = () => Promise.all(teams.map((team) => team.recorded()));
  const began = performance.now();
  const passed = (what: string) => console.log(`${what} after ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  await all();
  passed("all are recorded");
  const leads = await nats.leads(streams);
  // Each node would lead a third of them.
  for (const name of nats.names) expect(leads[name], `leaders: ${JSON.stringify(leads)}`).toBeGreaterThan(200 / 10);

  {
    using _talk = new Talk(teams);
    for (const node of nats.names) {
      await all();
      await nats.kill(node);
      // Each says something that only the other two can have taken.
      for (const team of teams) team.say();
      await all();
      passed(`all are recorded without ${node}`);
      await nats.restart(node);
      await nats.whole(streams);
      passed(`${node} has caught up`);
    }
  }
  await all();
  await using reading = await connectTo(nats.url);
  for (const team of teams) await team.isRecordedOnce(reading.nats);
});

async function connectTo(url: string) {
  const nats = await connect({ servers: url.split(",") });
  return { nats, [Symbol.asyncDispose]: () => nats.close() };
}
