import { openLeases } from "@tapedeck/ingest/record/journal/lease";
import { delay } from "@tapedeck/shared/sync/delay";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Processes, startProcesses } from "../processes.ts";
import { besideOf, delaysLittle, untilLong } from "./beside.ts";
import { seedSession, seedText } from "./seed.ts";

// Erasures: erase-delay.nightly.test.ts.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

let on: Processes;
/** Nobody checks the log while the test has this lease. */
let pauseChecks: () => Promise<AsyncDisposable>;

beforeAll(async () => {
  on = cleanup.use(await startProcesses([], { TAPEDECK_INGEST_CHECK_EVERY: "100ms" }));
  const nats = cleanup.adopt(await connect({ servers: on.nats }), (nc) => nc.close());
  const leases = cleanup.use(await openLeases(nats, "a test"));
  pauseChecks = () => until(() => leases.take("log-check/default", "a test"), { message: "the lease of the checks" });
  const sessions = ["30", "31", "32", "33"].map((end) => `01KE3M9Z6Q4W8T2V5X7Y9A1B${end}`);
  await using _paused = await pauseChecks();
  await Promise.all(sessions.map((session) => seedSession(on, session, 12_000, 20)));
}, 900_000);

const call = async (method: string, path: string) => {
  const answer = await fetch(`http://${on.http}/api/v1/${path}`, { method });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
};

it("a backup delays recording by 200 ms at most", { timeout: 900_000 }, async () => {
  await using _paused = await pauseChecks();
  await delaysLittle(besideOf(on), {
    what: "backups of 2,400 messages",
    round: () =>
      untilLong(async () => {
        await call("GET", "backup");
        return "more";
      }),
  });
});

it("a rebuild delays recording by 200 ms at most", { timeout: 900_000 }, async () => {
  await using _paused = await pauseChecks();
  await delaysLittle(besideOf(on), {
    what: "rebuilds of 48,000 events",
    round: () =>
      untilLong(async () => {
        expect((await call("POST", "rebuild")).toString()).toContain('{"type":"complete"}');
        return "more";
      }),
  });
});

it("a check of the log delays recording by 200 ms at most", { timeout: 900_000 }, async () => {
  const checks = () => on.services.ingest.logged.filter((line) => line.includes("the log was checked")).length;
  let paused: AsyncDisposable | undefined = await pauseChecks();
  await delaysLittle(besideOf(on), {
    what: "checks of 2,400 messages",
    async round() {
      const before = checks();
      await paused?.[Symbol.asyncDispose]();
      await untilLong(() => delay(500).then(() => "more"));
      await until(() => checks() > before, { message: "a check" });
      paused = await pauseChecks();
    },
  });
  await paused[Symbol.asyncDispose]();
});

it("text that expires delays recording by 200 ms at most", { timeout: 900_000 }, async () => {
  await using _paused = await pauseChecks();
  const messages = 1_000;
  let whole = 0;
  await delaysLittle(besideOf(on), {
    what: `${messages} messages of text that expire`,
    async prepare() {
      await seedText(on, messages, 20);
      whole = (await on.log.bounds()).messages;
    },
    async round() {
      const isRemoved = async () => (await on.log.bounds()).messages < whole;
      await until(isRemoved, { message: "the text to expire" });
      await untilLong(() => delay(500).then(() => "more"));
    },
  });
});
