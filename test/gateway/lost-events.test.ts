import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { connect, type Gap } from "@tapedeck/client";
import { Session } from "@tapedeck/proto/tapedeck/v1/lists";
import { migrated } from "@tapedeck/query/testing/migrated";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { endOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { incompressible, testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { connect as connectNats } from "nats";
import { exportFrom } from "tapedeck/api/exported-sessions";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// A file of the log is lost between two runs. Ingest's check finds that, and readers that cross it get an error.

const named = (developer: string) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: Stack;
let epoch: string;
/** The sequences on both sides of the lost file. */
let [before, after] = [0, 0];

/** Alice and bob in turns, enough for three files; carol at the beginning and at the end alone. */
async function fill(nats: TestNats): Promise<void> {
  const nc = await connectNats({ servers: nats.url });
  await using log = await openLog(nc, { workspace: "default" });
  epoch = log.epoch;
  const [alice, bob, carol] = ["alice", "bob", "carol"].map((name) => testWriter(log.writer, named(name)));
  const large = incompressible(60_000);
  await carol?.append(5, { session: "carol's" });
  for (let turn = 1; turn <= 50; turn++) {
    await alice?.append(4, large);
    await bob?.append(2, large);
  }
  await carol?.append(5, { session: "carol's" });
  await log[Symbol.asyncDispose]();
  await nc.close();
}

/** The sequences that the log has lost. */
async function findHole(nats: TestNats): Promise<void> {
  const nc = await connectNats({ servers: nats.url });
  await using log = await openLog(nc, { workspace: "default" });
  for await (const { seq } of log.stored({ first: 1, last: 310, subjects: [] }, new AbortController().signal)) {
    if (seq > before + 1 && after === 0) after = seq;
    if (after === 0) before = seq;
  }
  await log[Symbol.asyncDispose]();
  await nc.close();
}

beforeAll(async () => {
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const { url: database } = cleanup.use(await freshDatabase(migrated));
  await fill(nats);
  await nats.stop();
  const folder = nats.streamFolder(streamOf("default"));
  expect((await readdir(folder)).filter((name) => name.endsWith(".blk"))).toHaveLength(3);
  await rm(join(folder, "2.blk"));
  await nats.restart();
  await findHole(nats);
  expect(after).toBeGreaterThan(before + 1);
  const env = { TAPEDECK_INGEST_CHECK_RATE: "100000" };
  stack = cleanup.use(await startStack({ env, servers: { nats, database } }));
  const isKnown = async () => (await page(`after=${position(before)}&until=${position(after)}`)).status === 410;
  await until(isKnown, { message: "the hole to be known" });
});

const position = (seq: number) => formatPosition({ epoch, offset: endOf(seq) });

async function page(parameters: string) {
  const { status, body } = await stack.httpCall("GET", `/api/v1/events?${parameters}`);
  return { status, ...JSON.parse(body) } as {
    readonly status: number;
    readonly items?: readonly { readonly position: string }[];
    readonly nextPage?: string;
    readonly error?: { readonly code: string; readonly message: string; readonly earliest?: string };
  };
}

/** Reads page by page, and goes on where each error says. */
async function readPages(filter: string, limit = 100) {
  const sequences: number[] = [];
  const told: (string | undefined)[] = [];
  for (let next: string | undefined = "start"; next !== undefined; ) {
    const { items = [], nextPage, error } = await page(`after=${next}&limit=${limit}&${filter}`);
    if (error !== undefined) {
      expect(error.code).toBe("out_of_range");
      told.push(error.earliest);
    }
    sequences.push(...items.map((item) => seqIn(item.position)));
    next = error?.earliest ?? nextPage;
  }
  return { sequences, told };
}

async function stream(filter: Parameters<ReturnType<typeof connect>["events"]>[0]) {
  using tapedeck = connect({ url: `http://${stack.http}` });
  const gaps: Gap[] = [];
  const sequences: number[] = [];
  for await (const event of tapedeck.events({
    after: "start",
    until: "now",
    onGap: (gap) => gaps.push(gap),
    ...filter,
  }))
    sequences.push(seqIn(event.position));
  return { gaps, sequences };
}

const filters = {
  none: {},
  "a source that has lost events": { sources: ["alice/shop/skaffold"] },
  "a kind, from query's index": { kinds: ["build.started"] },
} as const;

it.each(Object.keys(filters) as (keyof typeof filters)[])("a stream says what is lost: filter of %s", async (which) => {
  await stack.caughtUp();
  const { gaps, sequences } = await stream(filters[which]);
  expect(gaps).toEqual([{ after: expect.any(String), until: position(after - 1) }]);
  expect(seqIn(gaps[0]?.after)).toBeLessThanOrEqual(before);
  const left = sequences.filter((seq) => seq <= before).length;
  expect(left).toBeGreaterThan(0);
  expect(sequences.filter((seq) => seq >= after).length).toBeGreaterThan(0);
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
});

it("an EventSource that reconnects goes on behind the hole", async () => {
  const headers = { accept: "text/event-stream" };
  const url = `http://${stack.http}/api/v1/stream?after=${position(before - 2)}&until=now`;
  const text = await (await fetch(url, { headers })).text();
  expect(text).toContain(`id: ${position(after - 1)}\nevent: error\n`);
  const again = await fetch(url, { headers: { ...headers, "last-event-id": position(after - 1) } });
  expect(await again.text()).not.toContain("event: error");
});

it("a live stream from before the hole ends there, and one from behind it goes on", async () => {
  using tapedeck = connect({ url: `http://${stack.http}` });
  const read = async (from: number) => {
    for await (const event of tapedeck.events({ after: position(from), sources: ["bob/shop/skaffold"] }))
      if (seqIn(event.position) >= after) return "behind it";
    return "ended";
  };
  await expect(read(before - 10)).rejects.toMatchObject({ code: "out_of_range", earliest: position(after - 1) });
  expect(await read(after - 1)).toBe("behind it");
});

it.each(["", "source=bob/shop/skaffold", "kind=build.started"])("pages say it, too: filter %s", async (filter) => {
  const { sequences, told } = await readPages(filter, 30);
  expect(told).toEqual([position(after - 1)]);
  expect(sequences.filter((seq) => seq <= before).length).toBeGreaterThan(0);
  expect(sequences.filter((seq) => seq >= after).length).toBeGreaterThan(0);
  expect(new Set(sequences).size).toBe(sequences.length);
});

it("a reading that ends within the hole says it, and one that ends before it does not", async () => {
  const within = await page(`after=${position(before)}&until=${position(before + 1)}`);
  expect(within).toMatchObject({ status: 410, error: { earliest: position(after - 1) } });
  expect(await page(`after=start&until=${position(before)}&limit=1`)).toMatchObject({ status: 200 });
  const { gaps } = await stream({ until: position(before) });
  expect(gaps).toEqual([]);
});

it.each([
  [{ sources: ["carol/shop/skaffold"] }, "source=carol/shop/skaffold"],
  [{ sessions: ["carol's"] }, "session=carol%27s"],
])("a reader of what has lost nothing gets no error: filter of %j", async (filter, parameters) => {
  expect((await stream(filter)).gaps).toEqual([]);
  const { sequences, told } = await readPages(parameters);
  expect(told).toEqual([]);
  expect(sequences.length).toBe(10);
});

it("an export goes on behind the hole, and is one export in the audit log", async () => {
  const target = { address: stack.grpc, isTls: false, metadata: {}, options: {}, name: "the stack" };
  using from = exportFrom(target);
  const sequences: number[] = [];
  const session = Session.fromPartial({ session: "s", source: "default/alice/shop/skaffold" });
  for await (const event of from.events(session, position(after + 10))) sequences.push(seqIn(event.position));
  expect(sequences.filter((seq) => seq <= before).length).toBeGreaterThan(0);
  expect(sequences.filter((seq) => seq >= after).length).toBeGreaterThan(0);
  // Entries are written in order, so this one comes last.
  const next = Session.fromPartial({ session: "carol's", source: "default/carol/shop/skaffold" });
  await Array.fromAsync(from.events(next, position(after + 10)));
  type Entry = { readonly action: string; readonly about: { readonly sessions: readonly string[] } };
  const exported = async () => {
    const { body } = await stack.httpCall("GET", "/api/v1/audit");
    const entries = body
      .trim()
      .split("\n")
      .map((line): Entry => JSON.parse(line));
    return entries.filter(({ action }) => action === "session.exported").map(({ about }) => about.sessions.join());
  };
  await until(async () => (await exported()).includes("carol's"), { message: "the second export" });
  expect((await exported()).toSorted()).toEqual(["carol's", "s"]);
});

it("the tables go on behind the hole", async () => {
  await stack.caughtUp();
  const { body } = await stack.httpCall("GET", "/api/v1/sources?source=alice/shop/skaffold");
  const { items } = JSON.parse(body) as { items: { readonly lastPosition: string }[] };
  expect(seqIn(items[0]?.lastPosition ?? "")).toBeGreaterThan(after);
});
