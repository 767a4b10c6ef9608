import { status } from "@grpc/grpc-js";
import { type Job, Job_State, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { connectTo } from "../client.ts";
import { startFakeVagrant } from "../server.ts";
import { commandResult, setUpShop, upJob } from "../shop.ts";
import { makeDatabase } from "./database.ts";

const { QUEUED, WAITING, RUNNING, SUCCESS, ERROR } = Job_State;
const { queueJob, cancelJob, validateJob, pruneOldJobs, getJob, listJobs } = VagrantService;

async function shop() {
  const fake = await startFakeVagrant();
  const client = connectTo(fake);
  const ids = setUpShop(fake);
  return {
    ...ids,
    fake,
    client,
    jobs: fake.jobs,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

const times = ({ queue_time, assign_time, ack_time, complete_time, cancel_time, expire_time }: Job) =>
  Object.entries({ queue_time, assign_time, ack_time, complete_time, cancel_time, expire_time })
    .filter(([, time]) => time !== undefined)
    .map(([name]) => name);

describe("QueueJob", () => {
  it("makes a job with a ULID that is read back without its project's basis", async () => {
    await using it = await shop();
    const { job_id } = await it.client.call(queueJob, { job: upJob(it), expires_in: "1m30s" });
    expect(job_id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    const job = await it.client.job(job_id);
    expect(job).toMatchObject({ id: job_id, state: QUEUED });
    expect(times(job)).toEqual(["queue_time", "expire_time"]);
    const { basis, ...project } = job.scope?.$case === "project" ? job.scope.value : {};
    expect(basis).toBeUndefined();
    expect(project).toMatchObject({ resource_id: it.project, name: "shop", path: "/home/dev/shop" });
    expect((job.expire_time?.seconds ?? 0n) - (job.queue_time?.seconds ?? 0n)).toBeGreaterThanOrEqual(89n);

    const target = it.target({ name: "web1" });
    const scoped = it.queue({
      scope: { $case: "target", value: { resource_id: target, name: "", project: undefined } },
    });
    const { scope } = await it.client.job(scoped);
    expect(scope?.value).toMatchObject({ resource_id: target, name: "web1", project: undefined });
    expect((await it.client.job(it.queue({ scope: undefined }))).scope).toBeUndefined();
  });

  it("refuses an id, no job, no duration and no such scope", async () => {
    await using it = await shop();
    const job = upJob(it);
    const codeOf = async (request: Parameters<typeof queueJob.requestSerialize>[0]) =>
      (await it.client.raw("QueueJob", queueJob.requestSerialize(request))).code;
    expect(await codeOf({ job: { ...job, id: "x" }, expires_in: "" })).toBe(status.INVALID_ARGUMENT);
    expect(await codeOf({ expires_in: "" })).toBe(status.FAILED_PRECONDITION);
    expect(await codeOf({ job, expires_in: "soon" })).toBe(status.FAILED_PRECONDITION);
    expect(await codeOf({ job: upJob({ ...it, project: "nobody" }), expires_in: "" })).toBe(status.INTERNAL);
    expect(await it.client.jobs()).toEqual([]);
  });

  it("takes a time that is over, and the job with it", async () => {
    await using it = await shop();
    const job = await it.client.job(it.queue({}, "-2s"));
    expect(job).toMatchObject({ state: ERROR, error: { code: 1, message: "canceled" } });
    expect(times(job)).toEqual(["queue_time", "cancel_time", "expire_time"]);
  });

  it("keeps an assigned_runner that a client made up, and no other field of the server", async () => {
    await using it = await shop();
    const made = { assigned_runner: { id: "me" }, ack_time: { seconds: 5n, nanos: 0 }, state: SUCCESS };
    const job = await it.client.job(it.queue(made));
    expect(job).toMatchObject({ assigned_runner: { id: "me" }, state: QUEUED });
    expect(job.ack_time).toBeUndefined();
  });
});

describe("a job", () => {
  it("goes through its states, with the times of each", async () => {
    await using it = await shop();
    const id = it.queue();
    const seen: [Job_State, string[]][] = [];
    const observation = async () => {
      const job = await it.client.job(id);
      seen.push([job.state, times(job)]);
    };
    await observation();
    it.jobs.assign(id);
    await observation();
    it.jobs.ack(id);
    await observation();
    it.jobs.complete(id, commandResult({ run_result: true }));
    await observation();
    expect(seen).toEqual([
      [QUEUED, ["queue_time"]],
      [WAITING, ["queue_time", "assign_time"]],
      [RUNNING, ["queue_time", "assign_time", "ack_time"]],
      [SUCCESS, ["queue_time", "assign_time", "ack_time", "complete_time"]],
    ]);
  });

  it("that a runner refuses is queued again and keeps its first assign_time, also the second time", async () => {
    await using it = await shop();
    const id = it.queue();
    it.jobs.assign(id);
    const { assign_time } = await it.client.job(id);
    it.jobs.nack(id);
    expect(await it.client.job(id)).toMatchObject({ state: QUEUED, assign_time });
    it.jobs.assign(id);
    expect(await it.client.job(id)).toMatchObject({ state: WAITING, assign_time });
    it.jobs.dropAssignment(id);
    expect(await it.client.job(id)).toMatchObject({ state: QUEUED, assign_time });
  });

  it("cancelled in the queue is over, without a complete_time; later it is only marked, once", async () => {
    await using it = await shop();
    const queued = it.queue();
    const waiting = it.queue();
    it.jobs.assign(waiting);
    const running = it.run();
    for (const job_id of [queued, waiting, running]) await it.client.call(cancelJob, { job_id });
    const states = await Promise.all([queued, waiting, running].map(it.client.job));
    expect(states.map(({ state }) => state)).toEqual([ERROR, WAITING, RUNNING]);
    expect(states.every(({ cancel_time }) => cancel_time !== undefined)).toBe(true);
    expect(states[0]).toMatchObject({ error: { code: 1 } });
    expect(states[0]?.complete_time).toBeUndefined();
    await it.client.call(cancelJob, { job_id: running });
    expect((await it.client.job(running)).cancel_time).toEqual(states[2]?.cancel_time);
    // A runner whose command is cancelled completes it all the same.
    it.jobs.complete(running, commandResult({ run_error: { code: 1, message: "canceled", details: [] } }));
    const done = await it.client.job(running);
    expect(done).toMatchObject({ state: SUCCESS, cancel_time: states[2]?.cancel_time });
    await it.client.call(cancelJob, { job_id: running });
    expect(await it.client.job(running)).toEqual(done);
    await expect(it.client.call(cancelJob, { job_id: "nobody" })).rejects.toThrow(/^5 job not found/);
  });

  it("expires in the queue, is marked while it waits, and runs on once it runs", async () => {
    await using it = await shop();
    const queued = it.queue({}, "30s");
    it.jobs.expire(queued);
    expect(await it.client.job(queued)).toMatchObject({ state: ERROR, error: { code: 1 } });
    const waiting = it.queue({}, "30s");
    it.jobs.assign(waiting);
    it.jobs.expire(waiting);
    const marked = await it.client.job(waiting);
    expect(marked.state).toBe(WAITING);
    expect(marked.cancel_time).toBeDefined();
    it.jobs.ack(waiting);
    expect(await it.client.job(waiting)).toMatchObject({ state: RUNNING, cancel_time: marked.cancel_time });
    const running = it.run();
    it.jobs.expire(running);
    expect((await it.client.job(running)).cancel_time).toBeUndefined();
  });

  it("without heartbeats is cancelled, and so is one that was refused, wherever it is by then", async () => {
    await using it = await shop();
    const running = it.run();
    it.jobs.loseHeartbeat(running);
    const lost = await it.client.job(running);
    expect(lost).toMatchObject({ state: ERROR, error: { code: 1, message: "canceled" } });
    expect(times(lost)).toEqual(["queue_time", "assign_time", "ack_time", "cancel_time"]);

    const refused = it.queue();
    expect(() => it.jobs.loseHeartbeat(refused)).toThrow("no heartbeats are expected");
    it.jobs.assign(refused);
    it.jobs.nack(refused);
    it.jobs.loseHeartbeat(refused);
    expect(await it.client.job(refused)).toMatchObject({ state: ERROR, error: { code: 1 } });
    const again = it.queue();
    it.jobs.assign(again);
    it.jobs.nack(again);
    it.jobs.assign(again);
    it.jobs.ack(again);
    it.jobs.loseHeartbeat(again);
    expect(await it.client.job(again)).toMatchObject({ state: ERROR });
    const over = it.run();
    it.jobs.complete(over);
    it.jobs.loseHeartbeat(over);
    expect(await it.client.job(over)).toMatchObject({ state: SUCCESS });
  });

  it.each([
    ["went well", { run_result: true }],
    ["ended with a code", { exit_code: 3 }],
    ["raised an error", { run_error: { code: 2, message: "The SSH command", details: [] } }],
    ["of a basis or target failed", {}],
  ])("whose command %s is a SUCCESS", async (_, run) => {
    await using it = await shop();
    const id = it.run();
    it.jobs.complete(id, commandResult(run));
    const { state, result, error } = await it.client.job(id);
    expect({ state, result: result?.run, error }).toMatchObject({ state: SUCCESS, result: run, error: undefined });
    expect(result?.run?.run_result).toBe("run_result" in run);
  });

  it("that the runner could not begin is an ERROR with what it said, and a complete_time", async () => {
    await using it = await shop();
    const id = it.run();
    it.jobs.fail(id, { code: 2, message: "context canceled", details: [] });
    const job = await it.client.job(id);
    expect(job).toMatchObject({ state: ERROR, error: { code: 2, message: "context canceled" } });
    expect(times(job)).toContain("complete_time");
    expect(() => it.jobs.complete(id)).toThrow(`cannot finish job ${id} in state ${ERROR}`);
  });
});

describe("_ListJobs", () => {
  it("has all jobs by id, with their results, also finished ones", async () => {
    await using it = await shop();
    const ids = [it.run(), it.queue(), it.run()];
    it.jobs.complete(ids[0] ?? "", commandResult({ run_result: true }));
    const jobs = await it.client.jobs();
    expect(jobs.map(({ id }) => id)).toEqual(ids.toSorted());
    expect(jobs.find(({ id }) => id === ids[0])?.result?.run?.run_result).toBe(true);
  });

  it("fails as a whole after PruneOldJobs, which keeps the oldest 50; a new process is well again", async () => {
    await using it = await shop();
    const ids = Array.from({ length: 52 }, () => it.queue()).toSorted();
    await it.client.call(pruneOldJobs, {});
    await expect(it.client.jobs()).rejects.toThrow(/^5 failed to locate job/);
    await expect(it.client.job(ids[51] ?? "")).rejects.toThrow(/^5 /);
    expect((await it.client.job(ids[49] ?? "")).state).toBe(QUEUED);
    await it.fake.restart();
    using again = connectTo(it.fake);
    expect((await again.jobs()).map(({ id }) => id)).toEqual(ids.slice(0, 50));
  });

  it("forgets the oldest finished jobs when there are many", async () => {
    await using fake = await startFakeVagrant({ remembered: 2 });
    using client = connectTo(fake);
    const { run, queue } = setUpShop(fake);
    const unfinished = queue();
    const ids = [1, 2, 3, 4].map(() => {
      const id = run();
      fake.jobs.complete(id);
      return id;
    });
    expect((await client.jobs()).map(({ id }) => id)).toEqual([unfinished, ids[2] ?? "", ids[3] ?? ""].toSorted());
  });
});

describe("ValidateJob", () => {
  it("is of use for a job that is there; any runner that ever was can take it", async () => {
    await using it = await shop();
    const fresh = await it.client.call(validateJob, { job: upJob(it), disable_assign: false });
    expect(fresh).toMatchObject({ valid: false, validation_error: { code: 9 }, assignable: false });
    const job = await it.client.job(it.queue());
    expect(await it.client.call(validateJob, { job, disable_assign: true })).toMatchObject({
      valid: true,
      assignable: true,
    });
    const other = { target: { $case: "id" as const, value: { id: "other" } } };
    const elsewhere = { job: { ...job, target_runner: other }, disable_assign: false };
    expect(await it.client.call(validateJob, elsewhere)).toMatchObject({ valid: true, assignable: false });
  });
});

describe("a new process", () => {
  it("knows unfinished jobs only, without their output", async () => {
    await using it = await shop();
    const done = it.run();
    it.jobs.complete(done, commandResult({ run_result: true }));
    const running = it.run();
    const queued = it.queue();
    await it.fake.restart();
    using again = connectTo(it.fake);
    expect((await again.jobs()).map(({ id }) => id)).toEqual([running, queued].toSorted());
    await expect(again.call(getJob, { job_id: done })).rejects.toThrow(/^5 job not found/);
    expect(await again.follow(done).end).toMatchObject({ code: 5 });
    expect(() => it.jobs.write(running, [])).toThrow("has no output any more");
    it.jobs.loseHeartbeat(running);
    expect((await again.job(running)).state).toBe(ERROR);
  });

  it("ends jobs at once whose time in the queue is over", async () => {
    let now = Date.parse("2030-01-01T00:00:00Z");
    await using fake = await startFakeVagrant({ now: () => now });
    const id = setUpShop(fake).queue({}, "30s");
    now += 31_000;
    await fake.restart();
    using client = connectTo(fake);
    expect((await client.job(id)).state).toBe(ERROR);
  });

  it("beside another one shows its unfinished jobs too, and can cancel what the other runs", async () => {
    const database = makeDatabase();
    await using first = await startFakeVagrant({ database });
    const { run, queue } = setUpShop(first);
    const zombie = run();
    await using second = await startFakeVagrant({ database });
    using client = connectTo(second);
    expect((await client.call(listJobs, {})).jobs).toMatchObject([{ id: zombie, state: RUNNING }]);
    const later = queue();
    expect(await client.jobs()).toHaveLength(1);
    second.jobs.loseHeartbeat(zombie);
    using other = connectTo(first);
    expect((await other.job(zombie)).state).toBe(ERROR);
    expect((await other.job(later)).state).toBe(QUEUED);
  });
});
