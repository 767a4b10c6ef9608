import { logStart } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startOtherWorkspace } from "../other-workspace.ts";
import { type Processes, parts, startProcesses } from "../processes.ts";
import { eraseAnswer } from "./erase-call.ts";
import { seedSession } from "./seed.ts";

async function call({ http }: Processes, method: string, path: string): Promise<string> {
  return (await fetch(`http://${http}/api/v1/${path}`, { method })).text();
}

async function isReadable(on: Processes): Promise<boolean> {
  const { lastOffset } = await on.log.bounds();
  expect(lastOffset).toBeGreaterThan(0);
  return (await call(on, "GET", "events?limit=500&kind=build.*")).includes("hush");
}

const done = (on: Processes, session: string) =>
  until(async () => (await eraseAnswer(on, session)).state === "done", {
    message: "the erasure to end",
    deadlineMs: 900_000,
  });

it("an erasure is brought to its end, whatever is killed meanwhile", { timeout: 900_000 }, async () => {
  const random = seeded("erase-kills");
  await using on = await startProcesses([]);
  await using other = await startOtherWorkspace(on);
  const session = "01KE3M9Z6Q4W8T2V5X7Y9A1B31";
  await seedSession(on, session, 600, 1);
  expect(await eraseAnswer(on, session)).toMatchObject({ state: "removing" });
  let removed = 0;
  for (const part of ["ingest", ...parts, "ingest"] as const) {
    await delay(50 + random.below(1_500));
    await on.kill(part);
    const far = await until(() => eraseAnswer(on, session), { message: "an answer after a kill" });
    expect([undefined, 600]).toContain(far.events);
    // What was written down last may be a moment older.
    expect(far.removed).toBeGreaterThanOrEqual(0);
    removed = Math.max(removed, far.removed);
    expect(await until(async () => ({ is: await isReadable(on) }), { message: "an answer" })).toEqual({ is: false });
  }
  await done(on, session);
  expect(await eraseAnswer(on, session)).toMatchObject({ state: "done", events: 600, removed: 600 });
  const messages: string[] = [];
  const { lastOffset } = await on.log.bounds();
  for await (const { event } of on.log.history(
    { afterOffset: logStart, subjects: [] },
    lastOffset,
    new AbortController().signal,
  )) {
    if (event.session === session) messages.push(event.kind);
  }
  expect(messages).toEqual(["session.erased"]);
  await other.finish();
});
