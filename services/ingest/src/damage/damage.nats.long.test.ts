import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { jetstreamManager } from "@nats-io/jetstream";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, logStart, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import { endSubjects, endsStream, streamOf } from "@tapedeck/shared/log/subjects";
import { reportTablesEnds, type TablesEnd } from "@tapedeck/shared/log/tables-end";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { incompressible, newEvent, testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { expect, it } from "vitest";
import { readConfig } from "../config.ts";
import { startIngest } from "../ingest.ts";
import { framesOf, openLogReader, testLogger } from "../testing/ingest-harness.ts";
import { openTestEnds } from "../testing/test-ends.ts";

const named = (developer: string) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });
const [alice, bob] = [named("alice"), named("bob")] as const;

const session = "01KE3M9Z6Q4W8T2V5X7Y9A1B3C";

type Readiness = {
  readonly checks: Readonly<Record<string, string>>;
  readonly details?: { readonly warnings?: readonly string[] };
};

/** Adds events of both sources in turns, enough for three files of the store. */
async function fill(nats: TestNats): Promise<{ alice: number; bob: number }> {
  const nc = await connect({ servers: nats.url });
  await using log = await openLog(nc, { workspace: "default" });
  await using ends = await openTestEnds(nc, { workspace: "default", epoch: log.epoch });
  const [a, b] = [testWriter(log.writer, alice), testWriter(log.writer, bob)];
  const large = { session, ...incompressible(60_000) };
  let last = { alice: 0, bob: 0 };
  for (let turn = 1; turn <= 50; turn++) last = { alice: await a.append(4, large), bob: await b.append(2, large) };
  for (const [source, seq, ordinal] of [[alice, last.alice, 200] as const, [bob, last.bob, 100] as const]) {
    ends.reached(source, seq, newEvent(source, ordinal, { session }).cursor);
  }
  await ends[Symbol.asyncDispose]();
  await nc.close();
  return last;
}

async function ingestOn(nats: TestNats, more: Readonly<Record<string, string>> = {}) {
  const { folder, ...tidy } = await temporaryFolder();
  const env = {
    ...more,
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder,
    TAPEDECK_INGEST_CHECK_RATE: "100000",
  };
  const ingest = await startIngest(readConfig({ env }), testLogger);
  const ask = async (path: string) => fetch(`http://${ingest.addresses.health}/${path}`);
  return {
    ...ingest,
    ready: async () => {
      const answer = await ask("readyz");
      return { status: answer.status, ...((await answer.json()) as Readiness) };
    },
    /** Resolves when all of the log was read, with what was recorded of it. */
    checked: async (lastSeq: number) => {
      const text = await until(
        async () => {
          const metrics = await (await ask("metrics")).text();
          const position = Number(/^tapedeck_ingest_log_checked_position\S* (\d+)$/m.exec(metrics)?.[1]);
          return position >= lastSeq && metrics;
        },
        { message: "the log to be checked" },
      );
      return [...text.matchAll(/^tapedeck_ingest_log_lost_events\{.*source="(\S+?)".*\} (\d+)$/gm)].map((found) => [
        found[1],
        Number(found[2]),
      ]);
    },
    [Symbol.asyncDispose]: async () => {
      await ingest[Symbol.asyncDispose]();
      await tidy[Symbol.asyncDispose]();
    },
  };
}

async function flip(file: string, at: number): Promise<void> {
  const bytes = await readFile(file);
  const place = at < 0 ? bytes.length + at : at;
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  await writeFile(file, bytes);
}

const gapsOf = async (logReader: Awaited<ReturnType<typeof openLogReader>>, source: SourceName) =>
  (await logReader.events(source)).flatMap((event) => (event.detail?.$case === "gap" ? [lostIn(event)] : []));

function lostIn({ session, detail }: Event) {
  const lost = detail?.$case === "gap" ? detail.value.lost : undefined;
  const ordinals = lost?.ordinals.map(({ channel, first, last }) => `${channel} ${first}-${last}`);
  return { session, after: seqIn(lost?.after), before: seqIn(lost?.before), ordinals, events: Number(lost?.events) };
}

const seqIn = (position = "") => sequenceOf(parsePosition(position)?.offset ?? logStart);

const damages: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  "a flipped byte": (folder) => flip(join(folder, "1.blk"), 900_000),
  "a deleted file": (folder) => rm(join(folder, "2.blk")),
};

it.each(Object.keys(damages))(
  "%s is recorded as gaps with their positions, once, however often it is started",
  async (what) => {
    await using nats = await startTestNats({ syncAlways: true });
    await fill(nats);
    await nats.stop();
    const folder = nats.streamFolder(streamOf("default"));
    expect((await readdir(folder)).filter((name) => name.endsWith(".blk"))).toHaveLength(3);
    await damages[what]?.(folder);
    await nats.restart();
    await using logReader = await openLogReader(nats.url);
    const left = [...(await logReader.events(alice)), ...(await logReader.events(bob))].length;
    expect(left).toBeLessThan(300);
    const ordinalsLeft = async (source: SourceName) =>
      (await logReader.events(source)).filter(({ channel }) => channel === "v1");
    const missing = [
      [alice, 200 - (await ordinalsLeft(alice)).length],
      [bob, 100 - (await ordinalsLeft(bob)).length],
    ].filter(([, count]) => count !== 0);
    {
      await using ingest = await ingestOn(nats);
      const gaps = async () => [...(await gapsOf(logReader, alice)), ...(await gapsOf(logReader, bob))].length;
      await until(async () => (await gaps()) === missing.length, { message: "the gaps" });
      expect(await ingest.checked(300)).toEqual(expect.arrayContaining(missing));
      await until(
        async () => {
          const { status, details } = await ingest.ready();
          expect(status).toBe(200);
          expect(details?.warnings).toEqual([
            expect.stringMatching(
              new RegExp(`^the log of the workspace "default" has lost ${300 - left} recorded events?,`),
            ),
          ]);
          return true;
        },
        { message: "the warning" },
      );
    }
    const reported = [...(await gapsOf(logReader, alice)), ...(await gapsOf(logReader, bob))];
    expect(reported.reduce((sum, { events }) => sum + events, 0)).toBe(300 - left);
    const present = await ordinalsLeft(alice);
    for (const { session: of, after, before, ordinals } of await gapsOf(logReader, alice)) {
      expect(of).toBe(session);
      expect(before).toBeGreaterThan(after);
      const [, first, last] = /^v1 (\d+)-(\d+)$/.exec(ordinals?.[0] ?? "") ?? [];
      expect(present.filter(({ ordinal }) => ordinal >= BigInt(first ?? 0) && ordinal <= BigInt(last ?? 0))).toEqual(
        [],
      );
    }

    await using again = await ingestOn(nats);
    const lastSeq = await lastMessage(logReader.log);
    expect(await again.checked(lastSeq)).toEqual(expect.arrayContaining(missing));
    expect([...(await gapsOf(logReader, alice)), ...(await gapsOf(logReader, bob))]).toEqual(reported);
  },
);

it("the log is read again and again while ingest runs: what is lost meanwhile is recorded", async () => {
  await using nats = await startTestNats({ syncAlways: true });
  await fill(nats);
  await using logReader = await openLogReader(nats.url);
  await using ingest = await ingestOn(nats, { TAPEDECK_INGEST_CHECK_EVERY: "50ms" });
  expect(await ingest.checked(300)).toEqual([]);
  expect((await ingest.ready()).details).toBeUndefined();
  await (await jetstreamManager(logReader.nats)).streams.deleteMessage(streamOf("default"), 100);
  const isTold = async () =>
    (await ingest.ready()).details?.warnings?.[0]?.startsWith(
      'the log of the workspace "default" has lost 1 recorded event,',
    );
  await until(isTold, { message: "the loss to be reported" });
  expect(await ingest.checked(301)).toHaveLength(1);
  // Also when a gap in the log has reported it.
  const kept = await (await jetstreamManager(logReader.nats)).streams.getMessage(endsStream, {
    last_by_subj: endSubjects("default").holes,
  });
  const hole = { source: alice, sessions: [session], first: 100, last: 100 };
  expect(kept?.json()).toEqual({ epoch: logReader.log.epoch, holes: [hole] });
});

it.each(["the last message", "the last file"])(
  "when %s of a source is lost, its ordinals go on behind what it had, and the gap is recorded",
  async (what) => {
    await using nats = await startTestNats({ syncAlways: true });
    await fill(nats);
    await nats.stop();
    const last = join(nats.streamFolder(streamOf("default")), "3.blk");
    if (what === "the last file") await rm(last);
    else await flip(last, -300);
    await nats.restart();
    await using logReader = await openLogReader(nats.url);
    expect(await lastMessage(logReader.log)).toBe(300);
    await using _ = await ingestOn(nats);
    const gaps = await until(
      async () => {
        const found = await gapsOf(logReader, bob);
        return found.length > 0 && found;
      },
      { message: "the gap" },
    );
    expect(gaps).toMatchObject([{ session, before: 0, ordinals: [expect.stringMatching(/^v1 \d+-100$/)] }]);
    expect((await logReader.log.writer.lastOf(bob))?.mark.cursor.ordinals).toEqual({ v1: 100, tapedeck: 1 });
  },
);

it("a log that lost its end is refused: no position is given twice", async () => {
  await using nats = await startTestNats({ syncAlways: true });
  await fill(nats);
  await nats.kill();
  await truncate(join(nats.streamFolder(streamOf("default")), "3.blk"), 700_000);
  await nats.restart();
  await using logReader = await openLogReader(nats.url);
  const lastSeq = await lastMessage(logReader.log);
  expect(lastSeq).toBeLessThan(300);
  await using ingest = await ingestOn(nats);
  await expect(ingest.failed).rejects.toThrow(
    `the log ends at position ${endText(logReader.log, lastSeq)}, but positions up to ${endText(logReader.log, 300)} were assigned: it has lost events. Restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
  await until(async () => (await ingest.ready()).status === 503, { message: "it not to be ready" });
});

const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);

async function cutInHalf(nats: TestNats): Promise<void> {
  await nats.kill();
  const file = join(nats.streamFolder(streamOf("default")), "1.blk");
  await truncate(file, Math.floor((await stat(file)).size / 2));
  await nats.restart();
}

it("so is one that loses its end while ingest runs: it records nothing more, and says why", async () => {
  await using nats = await startTestNats({ syncAlways: true });
  await using fake = await startFakeSkaffold({ recording });
  await using logReader = await openLogReader(nats.url);
  const source = { developer: "alice", project: "shop", address: fake.address };
  await using ingest = await ingestOn(nats, { TAPEDECK_SOURCES: JSON.stringify([source]) });
  await fake.playUntil({ v1: 20 });
  const frames = async () => framesOf(await logReader.events(alice), "v1").length;
  await until(async () => (await frames()) === 20, { message: "the frames to be recorded" });
  const lastSeq = await lastMessage(logReader.log);
  await cutInHalf(nats);
  await fake.playUntil({ v1: 30 });
  const left = await until(() => lastMessage(logReader.log), {
    message: "the log to be back",
  });
  const why = `the log ends at position ${endText(logReader.log, left)}, but positions up to `;
  const said = async () => {
    const { status, checks } = await ingest.ready();
    return status === 503 && checks.log?.startsWith(why) && checks.log;
  };
  const sentence = await until(said, { message: "it to be said" });
  // Other channels may have gone on after those frames.
  const [, given] = /positions up to (\S+) were assigned/.exec(sentence) ?? [];
  expect(seqIn(given)).toBeGreaterThanOrEqual(lastSeq);
  expect(await pushRefusal(ingest.addresses.grpc)).toMatchObject({ code: 14, details: expect.stringContaining(why) });
  expect(await lastMessage(logReader.log)).toBe(left);
});

/** What another developer's tap gets as an answer. */
async function pushRefusal(address: string): Promise<unknown> {
  const client = new RecorderClient(address, credentials.createInsecure());
  const call = client.push();
  const hello = { developer: "bob", project: "shop", upstream: "skaffold", tap: "T", redact: "off", first_index: 1n };
  call.write({ body: { $case: "hello", value: { ...hello, labels: {}, settings: {} } } });
  try {
    for await (const { body } of call) return body;
    return undefined;
  } catch (error) {
    return error;
  } finally {
    client.close();
  }
}

it("so is one that lost what ingest itself had recorded", async () => {
  await using nats = await startTestNats({ syncAlways: true });
  await using logReader = await openLogReader(nats.url);
  {
    await using fake = await startFakeSkaffold({ recording });
    const source = { developer: "alice", project: "shop", address: fake.address };
    await using _ = await ingestOn(nats, { TAPEDECK_SOURCES: JSON.stringify([source]) });
    await fake.playUntil({ v1: 20 });
    const frames = async () => framesOf(await logReader.events(alice), "v1").length;
    await until(async () => (await frames()) === 20, { message: "the frames to be recorded" });
  }
  const lastSeq = await lastMessage(logReader.log);
  await cutInHalf(nats);
  await using ingest = await ingestOn(nats);
  const why = await ingest.failed.catch(String);
  const [, given] = /positions up to (\S+) were assigned/.exec(why ?? "") ?? [];
  expect(seqIn(given)).toBeGreaterThanOrEqual(lastSeq);
});

it.each(["is asked", "has recorded before"])("so is one that ends before query's tables, which %s", async (what) => {
  await using nats = await startTestNats({ syncAlways: true });
  const nc = await connectThroughRestarts(nats.url);
  await using log = await openLog(nc, { workspace: "default" });
  await (await openTestEnds(nc, { workspace: "default", epoch: log.epoch }))[Symbol.asyncDispose]();
  let seq = 1;
  const reporting = reportTablesEnds(nc, () => new Map([["default", { epoch: log.epoch, seq }]]));
  await until(async () => (await lastTold(nc)) === 1, { message: "query to be known" });
  seq = await testWriter(log.writer, alice).append(20, { session });
  if (what === "has recorded before") {
    reporting[Symbol.dispose]();
    await until(async () => (await lastTold(nc)) === 20, { message: "it to be stored" });
  }
  await cutInHalf(nats);
  const isBack = async () => {
    await nc.flush();
    return true;
  };
  await until(isBack, { message: "the connection to be back" });
  await using ingest = await ingestOn(nats);
  await expect(ingest.failed).rejects.toThrow(`but positions up to ${endText(log, 20)} were assigned`);
  reporting[Symbol.dispose]();
  await nc.close();
});

async function lastTold(nc: NatsConnection): Promise<number | undefined> {
  const { streams } = await jetstreamManager(nc);
  const reported = await streams.getMessage(endsStream, { last_by_subj: endSubjects("default").tables });
  return reported?.json<TablesEnd>().seq;
}

async function lastMessage({ reader }: Pick<Log, "reader">): Promise<Sequence> {
  return sequenceOf((await reader.bounds()).lastOffset);
}

function endText({ epoch }: Pick<Log, "epoch">, seq: Sequence): string {
  return formatPosition({ epoch, offset: endOf(seq) });
}
