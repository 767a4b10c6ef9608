import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Processes, startProcesses } from "../processes.ts";
import { delaysLittle } from "./beside.ts";
import { seedSession, seedText } from "./seed.ts";

// Erasures: erase.long.test.ts. The removal of a moved workspace goes the same way, message by message.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

let on: Processes;
beforeAll(async () => {
  on = cleanup.use(await startProcesses([], { TAPEDECK_INGEST_CHECK_EVERY: "1s" }));
  await seedSession(on, "01KE3M9Z6Q4W8T2V5X7Y9A1B30", 60_000, 10);
}, 600_000);

const whole = async (method: string, path: string) => {
  const answer = await fetch(`http://${on.http}/api/v1/${path}`, { method });
  expect(answer.status).toBe(200);
  return answer.arrayBuffer();
};

it("a backup delays recording by 200 ms at most", { timeout: 600_000 }, async () => {
  await delaysLittle("a backup of 6,000 messages", on, () => whole("GET", "backup"));
});

it("a rebuild delays recording by 200 ms at most", { timeout: 600_000 }, async () => {
  await delaysLittle("a rebuild of 60,000 events", on, () => whole("POST", "rebuild"));
});

it("a check of the whole log delays recording by 200 ms at most", { timeout: 600_000 }, async () => {
  const checks = () => on.services.ingest.logged.filter((line) => line.includes("the log was checked")).length;
  await delaysLittle("three checks of 6,000 messages", on, async () => {
    const before = checks();
    await until(() => checks() >= before + 3, { message: "three checks", deadlineMs: 300_000 });
  });
});

it("text that expires delays recording by 200 ms at most", { timeout: 600_000 }, async () => {
  await seedText(on, 3_000, 20);
  const before = await on.log.bounds();
  await delaysLittle("3,000 messages of text that expire", on, async () => {
    const isGone = async () => (await on.log.bounds()).messages < before.messages - 2_500;
    await until(isGone, { message: "the text to expire", deadlineMs: 300_000 });
  });
});
