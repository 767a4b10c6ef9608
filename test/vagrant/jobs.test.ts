import { commandResult, type Shop, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Following } from "./client.ts";
import { outputOf, streamItemsIn } from "./output.ts";
import { jobRequest, kindsOf, lines, startVagrantStack, type VagrantStack } from "./stack.ts";
import { operations } from "./tables.ts";

// The jobs of a server, each step observed as it happens.
let on: VagrantStack;
let shop: Shop;
beforeAll(async () => {
  on = await startVagrantStack();
  shop = setUpShop(on.fake);
});
afterAll(() => on[Symbol.asyncDispose]());

/** Queues a job that the tap and a client follow. */
async function queued(expiresIn = ""): Promise<{ readonly job: string; readonly following: Following }> {
  const before = on.fake.calls("GetJobStream").made;
  const job = shop.queue({}, expiresIn);
  await on.waitForState(job, Job_State.QUEUED);
  await until(() => on.fake.calls("GetJobStream").made > before, { message: "the tap to follow it" });
  const following = on.client.job(job);
  await until(() => statesOf(following).length === 1, { message: "its first state" });
  return { job, following };
}

function run(job: string): void {
  on.fake.jobs.assign(job);
  on.fake.jobs.ack(job);
}

/** "QUEUED>WAITING"; with "!" if its end was requested. */
function statesOf({ messages }: Following): readonly string[] {
  return streamItemsIn(messages).flatMap((one) =>
    one.is === "state" ? [`${one.step}${one.isCanceling ? "!" : ""}`] : [],
  );
}

async function endOf(following: Following): Promise<readonly string[]> {
  expect(await following.end).toMatchObject({ code: 0 });
  return statesOf(following);
}

async function operationsOf(job: string) {
  await on.stack.drained();
  const all = (await operations(on.stack.database)) as readonly Readonly<Record<string, unknown>>[];
  return all.flatMap(({ kind, subject, instance, outcome, exit_code }) =>
    subject === job || instance === job ? [{ kind, outcome, exit_code }] : [],
  );
}

async function reportedOf(job: string, kind: string): Promise<Event | undefined> {
  return (await on.eventsOf("jobs")).find((event) => event.kind === kind && event.subject === job);
}

it("two simultaneous commands are two operations", async () => {
  const [one, other] = [await queued(), await queued()];
  run(one.job);
  run(other.job);
  for (const index of [0, 1, 2]) {
    on.fake.jobs.write(one.job, lines("one ", 1, index));
    on.fake.jobs.write(other.job, lines("other ", 1, index));
  }
  await on.waitForOutput(one.job, 3);
  await on.waitForOutput(other.job, 3);
  on.fake.jobs.complete(other.job, commandResult({ run_result: false, exit_code: 3 }));
  on.fake.jobs.complete(one.job, commandResult({ run_result: true }));
  const texts = ({ messages }: Following) =>
    outputOf(messages).map(({ event }) => (event?.$case === "line" ? event.value.msg : ""));
  for (const { job, following } of [one, other]) {
    expect(await endOf(following)).toEqual(["UNKNOWN>QUEUED", "QUEUED>WAITING", "WAITING>RUNNING", "RUNNING>SUCCESS"]);
    const kinds = ["job.queued", "job.assigned", "job.started", "command.started", "job.succeeded", "command.finished"];
    expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual(kinds);
  }
  expect(texts(one.following)).toEqual(["one 0", "one 1", "one 2"]);
  expect(texts(other.following)).toEqual(["other 0", "other 1", "other 2"]);
  expect(await operationsOf(one.job)).toEqual([
    { kind: "job", outcome: "succeeded", exit_code: null },
    { kind: "command", outcome: "succeeded", exit_code: 0 },
  ]);
  expect(await operationsOf(other.job)).toEqual([
    { kind: "job", outcome: "failed", exit_code: null },
    { kind: "command", outcome: "failed", exit_code: 3 },
  ]);
});

it("a command that is canceled while it runs ends with the runner's result", async () => {
  const { job, following } = await queued();
  run(job);
  await on.waitForState(job, Job_State.RUNNING);
  expect(await on.client.ask("CancelJob", jobRequest(job))).toMatchObject({ code: 0 });
  await on.waitForEvent("job.cancel_requested", job);
  on.fake.jobs.complete(job, commandResult({ run_error: { code: 1, message: "context canceled", details: [] } }));
  expect(await endOf(following)).toEqual([
    "UNKNOWN>QUEUED",
    "QUEUED>WAITING",
    "WAITING>RUNNING",
    "RUNNING>RUNNING!",
    "RUNNING>SUCCESS!",
  ]);
  expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual([
    ...["job.queued", "job.assigned", "job.started", "command.started", "job.cancel_requested"],
    ...["job.succeeded", "command.finished"],
  ]);
  expect((await reportedOf(job, "command.finished"))?.detail).toMatchObject({
    value: { canceled: true, succeeded: false },
  });
  expect((await operationsOf(job)).map(({ outcome }) => outcome)).toEqual(["canceled", "canceled"]);
});

it.each<[string, string, (job: string) => void]>([
  ["canceled while it is queued", "requested", (job) => on.fake.jobs.cancel(job)],
  ["expired", "expired", (job) => on.fake.jobs.expire(job)],
])("a job that is %s never ran", async (_, reason, happens) => {
  const { job, following } = await queued(reason === "expired" ? "1ms" : "1h");
  happens(job);
  expect(await endOf(following)).toEqual(["UNKNOWN>QUEUED", "QUEUED>ERROR!"]);
  expect(streamItemsIn(following.messages).map((one) => one.is)).toEqual(["open", "state", "state", "complete"]);
  expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual([
    "job.queued",
    ...(reason === "requested" ? ["job.cancel_requested"] : []),
    "job.canceled",
  ]);
  expect(await reportedOf(job, "job.canceled")).toMatchObject({
    outcome: Outcome.OUTCOME_CANCELED,
    detail: { value: { reason } },
  });
  expect((await operationsOf(job)).filter(({ outcome }) => outcome !== "canceled")).toEqual([]);
});

it("a job that its runner rejects is queued again, and runs on another one", async () => {
  const { job, following } = await queued();
  const states = () => statesOf(following).length;
  on.fake.jobs.assign(job);
  await until(() => states() === 2, { message: "the assignment" });
  on.fake.jobs.nack(job);
  await until(() => states() === 3, { message: "the refusal" });
  on.fake.jobs.assign(job);
  await until(() => states() === 4, { message: "the second assignment" });
  on.fake.jobs.ack(job);
  on.fake.jobs.complete(job, commandResult({ run_result: true }));
  const steps = await endOf(following);
  expect(steps.slice(0, 4)).toEqual(["UNKNOWN>QUEUED", "QUEUED>WAITING", "WAITING>QUEUED", "QUEUED>WAITING"]);
  expect(steps.at(-1)).toMatch(/>SUCCESS$/);
  expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual([
    ...["job.queued", "job.assigned", "job.requeued", "job.assigned", "job.started", "command.started"],
    ...["job.succeeded", "command.finished"],
  ]);
  const attempts = (await on.eventsOf("jobs")).flatMap(({ subject, kind, detail }) =>
    subject === job && kind === "job.assigned" && detail?.$case === "job" ? [detail.value.attempt] : [],
  );
  expect(attempts).toEqual([1, 2]);
});

it("a job whose runner is gone is given up after two minutes, and its output stays", async () => {
  const { job, following } = await queued();
  run(job);
  on.fake.jobs.write(job, lines("before ", 5));
  await on.waitForOutput(job, 5);
  on.fake.jobs.loseHeartbeat(job);
  expect(await endOf(following)).toEqual(["UNKNOWN>QUEUED", "QUEUED>WAITING", "WAITING>RUNNING", "RUNNING>ERROR!"]);
  expect(outputOf(following.messages)).toHaveLength(5);
  expect(kindsOf(await on.eventsOf("jobs"), job)).toEqual([
    ...["job.queued", "job.assigned", "job.started", "command.started", "job.canceled", "command.finished"],
  ]);
  expect((await reportedOf(job, "job.canceled"))?.detail).toMatchObject({ value: { reason: "heartbeat" } });
  expect((await operationsOf(job)).map(({ kind, outcome }) => [kind, outcome])).toEqual([
    ["job", "canceled"],
    ["command", "canceled"],
  ]);
});

it("no job caused a gap", async () => {
  await on.stack.drained();
  expect((await on.eventsOf("tapedeck")).filter(({ kind }) => kind === "session.gap")).toEqual([]);
});
