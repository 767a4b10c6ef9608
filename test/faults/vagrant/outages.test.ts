import { status } from "@grpc/grpc-js";
import { commandResult, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Job_State, ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { outputOf, streamItemsIn } from "../../vagrant/output.ts";
import { kindsOf, lines, startVagrantStack, type VagrantStack } from "../../vagrant/stack.ts";
import { operations } from "../../vagrant/tables.ts";
import { holes, sessionsOf } from "../recorded-events.ts";

/** The server keeps so many events, then it begins anew. */
const window = 5_248;

/** Starts a server with a running job that has written lines "a0", "a1" …, as many as are recorded. */
async function running(written = 0, options: Parameters<typeof startVagrantStack>[0] = {}) {
  await using cleanup = new AsyncDisposableStack();
  const on = cleanup.use(await startVagrantStack(options));
  const shop = setUpShop(on.fake);
  const job = shop.run();
  await on.waitForState(job, Job_State.RUNNING);
  await until(() => on.fake.streams() > 0, { message: "the tap to follow the job" });
  if (written > 0) on.fake.jobs.write(job, lines("a", written));
  await on.waitForOutput(job, written);
  const owned = cleanup.move();
  return { on, shop, job, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Restores the network and waits for the tap. */
async function mended({ fake }: VagrantStack): Promise<void> {
  const before = fake.calls("GetJobStream").made;
  await fake.mend();
  await until(() => fake.calls("GetJobStream").made > before, { message: "the tap to follow again" });
}

/** Returns the recorded output of a job by positions: "0-99 a0-a99". */
async function written(on: VagrantStack, job: string): Promise<readonly string[]> {
  const pieces = (await on.eventsOf("jobs")).flatMap(({ kind, subject, detail }) =>
    kind === "terminal.written" && subject === job && detail?.$case === "text"
      ? [{ index: Number(detail.value.output?.index), text: detail.value.text.trimEnd() }]
      : [],
  );
  const from = (index: number) => pieces[index]?.index ?? -1;
  return runsOf(pieces.map(({ text }) => text)).map(({ first, last, text }) => `${from(first)}-${from(last)} ${text}`);
}

/** Merges lines that count up by one: from the line at `first` to that at `last`. */
function runsOf(texts: readonly string[]) {
  const runs: { first: number; last: number; text: string }[] = [];
  for (const [index, text] of texts.entries()) {
    const run = runs.at(-1);
    const [, prefix = "", number = ""] = /^(\D*)(\d+)$/.exec(text) ?? [];
    if (run !== undefined && texts[index - 1] === `${prefix}${Number(number) - 1}`) {
      run.last = index;
      run.text = `${run.text.split("-")[0]}-${text}`;
    } else runs.push({ first: index, last: index, text });
  }
  return runs;
}

async function outputGaps(on: VagrantStack) {
  return (await on.eventsOf("tapedeck")).flatMap(({ detail }) =>
    detail?.$case === "gap" && detail.value.output !== undefined ? [detail.value.output] : [],
  );
}

/** Returns the output of a finished job as a client reads it: "a0-a99". */
async function readWhole(on: VagrantStack, job: string): Promise<readonly string[]> {
  const { end, messages } = on.client.job(job);
  expect(await end).toMatchObject({ code: 0 });
  expect(streamItemsIn(messages).at(-1)?.is).toBe("complete");
  const texts = outputOf(messages).map(({ event }) => (event?.$case === "line" ? event.value.msg : ""));
  return runsOf(texts).map(({ text }) => text);
}

it("output that a job writes during a network outage is read afterwards", async () => {
  await using run = await running(100);
  const { on, job } = run;
  await on.fake.cut();
  await on.waitForEvent("upstream.lost");
  on.fake.jobs.write(job, lines("b", 200));
  await mended(on);
  await on.waitForOutput(job, 300);
  on.fake.jobs.write(job, lines("c", 50));
  await on.waitForOutput(job, 350);
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForState(job, Job_State.SUCCESS);
  expect(await written(on, job)).toEqual(["0-99 a0-a99", "100-299 b0-b199", "300-349 c0-c49"]);
  expect(await readWhole(on, job)).toEqual(["a0-a99", "b0-b199", "c0-c49"]);
  expect(await outputGaps(on)).toEqual([]);
  expect(sessionsOf(await on.stack.events())).toHaveLength(1);
  expect(holes(await on.stack.events())).toEqual([]);
});

it("a job that ended during a network outage is recorded whole, with all its output", async () => {
  await using run = await running(10);
  const { on, job } = run;
  await on.fake.cut();
  await on.waitForEvent("upstream.lost");
  on.fake.jobs.write(job, lines("b", 90));
  on.fake.jobs.complete(job, commandResult({ exit_code: 1 }));
  await mended(on);
  await on.waitForOutput(job, 100);
  await on.waitForEvent("command.finished", job);
  expect(await written(on, job)).toEqual(["0-9 a0-a9", "10-99 b0-b89"]);
  expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual([
    ...["job.queued", "job.assigned", "job.started", "command.started", "job.succeeded", "command.finished"],
  ]);
  expect(await outputGaps(on)).toEqual([]);
});

it("output that was overwritten during a network outage is a gap of known size", async () => {
  await using run = await running(100);
  const { on, job } = run;
  await on.fake.cut();
  await on.waitForEvent("upstream.lost");
  on.fake.jobs.write(job, lines("b", 6_000));
  await mended(on);
  const left = (100 + 6_000) % window;
  await on.waitForOutput(job, 100 + left);
  on.fake.jobs.write(job, lines("c", 5));
  await on.waitForOutput(job, 100 + left + 5);
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForState(job, Job_State.SUCCESS);
  expect(await written(on, job)).toEqual([
    "0-99 a0-a99",
    `${window}-${window + left - 1} b${window - 100}-b5999`,
    `${window + left}-${window + left + 4} c0-c4`,
  ]);
  expect(await outputGaps(on)).toMatchObject([{ job, index: 100n, next_index: BigInt(window) }]);
  // The gap precedes the next event.
  const order = (await on.stack.events()).flatMap(({ event }) => orderOf(event, job));
  expect(order.indexOf("gap")).toBe(order.indexOf(`output ${window}`) - 1);
  expect(await readWhole(on, job)).toEqual(["a0-a99", `b${window - 100}-b5999`, "c0-c4"]);
});

it("a job that writes more than the server keeps has no gap if it is read all along", async () => {
  await using run = await running(window - 10);
  const { on, job } = run;
  on.fake.jobs.write(job, lines("b", 20));
  await on.waitForOutput(job, window + 10);
  await on.fake.cut();
  await on.waitForEvent("upstream.lost");
  on.fake.jobs.write(job, lines("c", 5));
  await mended(on);
  await on.waitForOutput(job, window + 15);
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForState(job, Job_State.SUCCESS);
  expect(await readWhole(on, job)).toEqual([`a0-a${window - 11}`, "b0-b19", "c0-c4"]);
  expect(await outputGaps(on)).toEqual([]);
});

it("a server that goes away before it is asked again leaves its last output in doubt", async () => {
  await using run = await running(20);
  const { on, job } = run;
  const before = on.fake.calls("GetJobStream").made;
  // This stream gets all of the output; one that is opened later gets nothing.
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  on.fake.holdStreams("states");
  on.fake.holdStreams("output");
  await on.waitForEvent("command.finished", job);
  await until(() => on.fake.calls("GetJobStream").made > before, { message: "the tap to ask again" });
  await on.fake.goAway();
  await until(async () => (await outputGaps(on)).length > 0, { message: "the doubt" });
  const gaps = await outputGaps(on);
  expect(gaps).toMatchObject([{ job, index: 20n }]);
  expect(gaps[0]?.next_index).toBeUndefined();
  expect(await readWhole(on, job)).toEqual(["a0-a19"]);
});

it("a restarted server is another session, and a finished job of the previous one is still served", async () => {
  // The clock is an hour behind, which makes the stale jobs an hour old.
  await using run = await running(30, { now: () => Date.now() - 3_600_000 });
  const { on, job, shop } = run;
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForEvent("command.finished", job);
  const left = shop.run();
  await on.waitForState(left, Job_State.RUNNING);
  const waiting = shop.queue();
  await on.waitForState(waiting, Job_State.QUEUED);
  on.fake.jobs.write(left, lines("z", 7));
  await on.waitForOutput(left, 7);
  const before = await on.client.ask("_ListJobs");
  const following = on.client.job(left);
  await until(() => outputOf(following.messages).length === 7, { message: "a reader to have read so far" });
  await on.fake.restart();
  // The stream ends as if the server itself had cut it.
  expect(await following.end).toMatchObject({ code: status.UNAVAILABLE });
  expect(outputOf(following.messages)).toHaveLength(7);
  await until(async () => sessionsOf(await on.stack.events()).length === 2, { message: "another session" });
  const [one, other] = sessionsOf(await on.stack.events());
  await until(async () => stalesIn(await on.eventsOf("jobs"), other).length === 2, { message: "what was left behind" });
  expect(stalesIn(await on.eventsOf("jobs"), other).toSorted()).toEqual([left, waiting].toSorted());
  expect((await on.eventsOf("tapedeck")).find(({ kind }) => kind === "session.ended")).toMatchObject({ session: one });
  await on.stack.drained();
  const now = ListJobsResponse.decode((await on.client.ask("_ListJobs")).bytes).jobs;
  expect(now.map(({ id }) => id)).toEqual(ListJobsResponse.decode(before.bytes).jobs.map(({ id }) => id));
  expect(await readWhole(on, job)).toEqual(["a0-a29"]);
  const again = on.client.job(left);
  await until(() => outputOf(again.messages).length === 7, { message: "a reader that comes back" });
  // The server has lost their output, and there may have been more of it.
  on.fake.jobs.loseHeartbeat(left);
  on.fake.jobs.cancel(waiting);
  await on.waitForState(left, Job_State.ERROR);
  await on.waitForState(waiting, Job_State.ERROR);
  expect(await again.end).toMatchObject({ code: 0 });
  expect(streamItemsIn(again.messages).flatMap((one) => (one.is === "state" ? [one.step] : []))).toEqual([
    "UNKNOWN>RUNNING",
    "RUNNING>ERROR",
  ]);
  expect(await readWhole(on, left)).toEqual(["z0-z6"]);
  expect((await outputGaps(on)).filter((gap) => gap.job === left).length).toBeGreaterThan(0);
  expect(holes(await on.stack.events())).toEqual([]);
});

it("a server that restarts while nothing records it is another session", async () => {
  await using run = await running(5);
  const { on, job, shop } = run;
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForEvent("command.finished", job);
  const left = shop.run();
  await on.waitForEvent("command.started", left);
  let after = "";
  await on.restart(async () => {
    await on.fake.restart();
    after = shop.run();
    on.fake.jobs.complete(after, commandResult({ run_result: true }));
  });
  await on.waitForEvent("command.finished", after);
  const events = (await on.stack.events()).map(({ event }) => event);
  const [one, other] = sessionsOf(await on.stack.events());
  const sessionsWith = (id: string, kind: string) =>
    events.flatMap((event) => (event.subject === id && event.kind === kind ? [event.session] : []));
  expect(sessionsWith(job, "job.succeeded")).toEqual([one]);
  expect(sessionsWith(left, "job.started")).toEqual([one, other]);
  expect(sessionsWith(left, "job.lost")).toEqual([]);
  expect(sessionsWith(after, "job.succeeded")).toEqual([other]);
  expect(holes(await on.stack.events())).toEqual([]);
  expect(await readWhole(on, job)).toEqual(["a0-a4"]);
  expect(await readWhole(on, after)).toEqual([]);
});

it("a server that restarts without its jobs has lost them, and their followers get an error", async () => {
  await using run = await running(5);
  const { on, job, shop } = run;
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForEvent("command.finished", job);
  const lost = shop.run();
  await on.waitForState(lost, Job_State.RUNNING);
  on.fake.jobs.write(lost, lines("z", 7));
  await on.waitForOutput(lost, 7);
  const following = on.client.job(lost);
  await until(() => outputOf(following.messages).length === 7, { message: "a reader to have read so far" });
  await on.fake.goAway();
  on.fake.database.jobs.clear();
  await on.fake.restart();
  await on.waitForEvent("job.lost", lost);
  await on.waitForEvent("command.finished", lost);
  expect(kindsOf(await on.eventsOf("jobs"), lost)).toEqual([
    ...["job.queued", "job.assigned", "job.started", "command.started", "job.lost", "command.finished"],
  ]);
  expect(await following.end).toMatchObject({ code: status.UNAVAILABLE });
  expect(outputOf(following.messages)).toHaveLength(7);
  expect((await on.waitForState(lost, Job_State.RUNNING)).id).toBe(lost);
  expect(await readWhole(on, job)).toEqual(["a0-a4"]);
  await until(async () => sessionsOf(await on.stack.events()).length === 2, { message: "another session" });
  const [ended] = (await operations(on.stack.database)).slice(-1);
  expect(ended).toMatchObject({ kind: "command", outcome: "unknown" });
});

it("jobs of a server that can no longer list them are requested one by one", async () => {
  await using run = await running(3);
  const { on, job, shop } = run;
  // Another process on the same database has pruned a job of this one.
  const removed = shop.queue();
  await on.waitForState(removed, Job_State.QUEUED);
  on.fake.database.jobs.delete(removed);
  const failed = await on.fake.calls("_ListJobs").made;
  await until(() => on.fake.calls("_ListJobs").made > failed + 1, { message: "two looks that fail" });
  on.fake.jobs.write(job, lines("b", 4));
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForEvent("command.finished", job);
  await on.waitForOutput(job, 7);
  expect(await readWhole(on, job)).toEqual(["a0-a2", "b0-b3"]);
});

function stalesIn(events: readonly Event[], session: string | undefined): string[] {
  return events.flatMap(({ kind, subject, detail, session: own }) =>
    kind === "job.queued" && own === session && detail?.$case === "job" && detail.value.stale ? [subject] : [],
  );
}

function orderOf({ kind, subject, detail }: Event, job: string): string[] {
  if (detail?.$case === "gap" && detail.value.output?.job === job) return ["gap"];
  return kind === "terminal.written" && subject === job && detail?.$case === "text"
    ? [`output ${detail.value.output?.index}`]
    : [];
}
