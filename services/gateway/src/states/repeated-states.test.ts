import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { endPosition } from "@tapedeck/shared/testing/positions";
import { startTestLog, testSources } from "@tapedeck/shared/testing/test-log";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { QueryClient } from "../query-client.ts";
import { RecentAnswers } from "./recent-answers.ts";
import { repeatedStates } from "./repeated-states.ts";

// The log is a real one. Query is not: its answers have the position that a test gives them.

const [alice] = testSources as [(typeof testSources)[0]];
let log: Awaited<ReturnType<typeof startTestLog>>;
let append: () => Promise<number>;
beforeAll(async () => {
  log = await startTestLog();
  append = async () => writer.append(1);
  const writer = testWriter(log.writer, alice);
  await append();
});
afterAll(() => log[Symbol.asyncDispose]());

/** How the requests were made, and how many of them query got. */
function start({ heard = {}, reader = () => log.reader as Pick<typeof log.reader, "epoch" | "bounds"> } = {}) {
  const removed = new Set<string>();
  let requests = 0;
  let position = "";
  const query: Pick<QueryClient, "readState"> = {
    async readState() {
      requests++;
      return {
        head: { position, source: alice, session: "s", session_ended: false, heard_at: heard } as never,
        rows: [],
      };
    },
  };
  const states = repeatedStates({
    query: query as QueryClient,
    log: reader,
    answers: new RecentAnswers({ maxBytes: 100_000, maxAgeMs: 60_000 }),
    isRemoved: (epoch) => removed.has(epoch),
  });
  const question = { workspace: "acme", source: alice, collection: "skaffold.v1" };
  return {
    removed,
    /** The tables have the log up to this message. */
    tablesAt: (seq: number, epoch = log.epoch) => {
      position = endPosition(epoch, seq);
    },
    read: async (more: Parameters<QueryClient["readState"]>[0] = {}) =>
      (await states.readState({ ...question, ...more })).head.position,
    requests: () => requests,
  };
}

const end = async () => Math.floor((await log.reader.bounds()).lastOffset / 1_024);

it("a state is answered again without query while nothing is written to the log", async () => {
  const { tablesAt, read, requests } = start();
  tablesAt(await end());
  const first = await read();
  expect([await read(), await read({ at: "" }), requests()]).toEqual([first, first, 1]);
});

it("query gets a request again as soon as anything is written, and its newer answer is the one that is repeated", async () => {
  const { tablesAt, read, requests } = start();
  tablesAt(await end());
  const before = await read();
  const seq = await append();
  // The tables are behind the log.
  expect([await read(), requests()]).toEqual([before, 2]);
  tablesAt(seq);
  await until(async () => (await read()) !== before, { message: "the newer answer" });
  await until(
    async () => {
      const count = requests();
      return (await read()) === endPosition(log.epoch, seq) && requests() === count;
    },
    { message: "the newer answer to be repeated" },
  );
});

it("an answer is repeated only for the same question", async () => {
  const { tablesAt, read, requests } = start();
  tablesAt(await end());
  await read();
  for (const more of [{ session: "s" }, { also: ["skaffold.v2"] }, { key_prefix: "a" }, { with_newest_source: true }])
    await read(more);
  expect(requests()).toBe(5);
});

it("a state at a position or a time always comes from query", async () => {
  const { tablesAt, read, requests } = start();
  tablesAt(await end());
  for (const at of [endPosition(log.epoch, 1), "2026-01-31T12:00:00Z"]) {
    await read({ at });
    await read({ at });
  }
  expect(requests()).toBe(4);
});

it("an answer is not repeated for a position that it does not reflect", async () => {
  const { tablesAt, read, requests } = start();
  const seq = await end();
  tablesAt(seq);
  await read();
  await read({ min_position: endPosition(log.epoch, seq) });
  expect(requests()).toBe(1);
  const unreflected = [endPosition(log.epoch, seq + 1), endPosition("another", 1), "no position"];
  for (const min_position of unreflected) await read({ min_position });
  expect(requests()).toBe(4);
});

it("an answer that names when collections were heard is not repeated, because that changes beside the log", async () => {
  const { tablesAt, read, requests } = start({ heard: { "rkt.pods": {} } });
  tablesAt(await end());
  await read();
  await read();
  expect(requests()).toBe(2);
});

it("an answer of another log is not repeated, nor one of a log that is being removed", async () => {
  const { tablesAt, read, requests, removed } = start();
  const seq = await end();
  tablesAt(seq);
  await read();
  removed.add(log.epoch);
  await read();
  expect(requests()).toBe(2);
  const other = start();
  other.tablesAt(seq, "another");
  await other.read();
  await other.read();
  expect(other.requests()).toBe(2);
});

it("query gets the requests while the log is away, or does not answer at once", async () => {
  const away = start({
    reader: () => {
      throw new Error("away");
    },
  });
  const silent = start({ reader: () => ({ epoch: log.epoch, bounds: () => new Promise(() => {}) }) });
  for (const { tablesAt, read, requests } of [away, silent]) {
    tablesAt(await end());
    await read();
    await read();
    expect(requests()).toBe(2);
  }
});

it("a log that was just found to have more is not read for its end at each request", async () => {
  let bounds = 0;
  const counted = {
    epoch: log.epoch,
    bounds: async () => {
      bounds++;
      return log.reader.bounds();
    },
  };
  const { tablesAt, read } = start({ reader: () => counted });
  tablesAt((await end()) - 1);
  await read();
  const startedAt = performance.now();
  for (let count = 0; count < 10; count++) await read();
  expect(bounds).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 100);
});
