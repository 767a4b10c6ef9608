import { Metadata, status } from "@grpc/grpc-js";
import {
  Job,
  Job_State,
  type QueueJobRequest,
  Target,
  type UpsertTargetRequest,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { connectTo, line, protocol } from "./client.ts";
import { type FakeVagrant, startFakeVagrant } from "./server.ts";
import { setUpShop, upJob } from "./shop.ts";

const service = VagrantService;
const empty = Buffer.alloc(0);
const unavailable = { code: status.UNAVAILABLE };

describe("metadata", () => {
  const withSpace = "1, 1";
  it.each([["1,1"], ["1,5"], ["0,1"], [withSpace], ["1,1,9"]])("%j will do", async (value) => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    expect(await client.raw("ListTargets", empty, protocol(value))).toMatchObject({ code: 0 });
  });

  it.each([
    ["none", [], /is not set/],
    ["a repeated one", ["1,1", "1,1"], /is not set/],
    ["rubbish", ["x"], /invalid format/],
    ["nothing", [""], /invalid format/],
    ["an outdated client", ["0,0"], /client is outdated/],
    ["an outdated server", ["2,2"], /server is outdated/],
  ])("%s is refused, by streams too", async (_, values, text) => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    const refused = { code: status.INVALID_ARGUMENT, details: expect.stringMatching(text) };
    expect(await client.raw("_ListJobs", empty, protocol(...values))).toMatchObject(refused);
    expect(await client.follow("nobody", protocol(...values)).end).toMatchObject(refused);
    expect(await client.raw("GetVersionInfo", empty, protocol(...values))).toMatchObject({ code: 0 });
  });

  it("of other names are of no interest, also an authorization", async () => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    const metadata = protocol("1,1");
    for (const key of ["authorization", "client-version", "client-entrypoint-protocol"]) metadata.set(key, "bogus");
    expect(await client.raw("ListTargets", empty, metadata)).toMatchObject({ code: 0 });
    expect(fake.newestCalls.at(-1)?.metadata).toMatchObject({ authorization: "bogus", "client-api-protocol": "1,1" });
  });
});

it.each([
  ["2.3", "2.3.7"],
  ["2.4", "2.4.3"],
] as const)("answers its version without being asked properly: v%s", async (generation, version) => {
  await using fake = await startFakeVagrant({ generation });
  using client = connectTo(fake);
  const { bytes } = await client.raw("GetVersionInfo", empty, new Metadata());
  const { info } = service.getVersionInfo.responseDeserialize(bytes);
  expect(info).toMatchObject({ version, api: { minimum: 1, current: 1 }, entrypoint: { minimum: 1, current: 1 } });
});

it.each(["BootstrapToken", "GenerateInviteToken", "GenerateLoginToken", "ConvertInviteToken"])(
  "does not have %s",
  async (rpc) => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    expect(await client.raw(rpc, empty)).toMatchObject({ code: status.UNIMPLEMENTED });
  },
);

it("ends every log stream at once", async () => {
  await using fake = await startFakeVagrant();
  const { project } = setUpShop(fake);
  using client = connectTo(fake);
  const { path, requestSerialize, responseDeserialize } = service.getLogStream;
  const request = {
    scope: { $case: "project" as const, value: { resource_id: project, path: "", name: "" } },
    limit_backlog: 0,
  };
  const call = client.client.makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    request,
    protocol("1,1"),
  );
  call.on("error", () => {});
  const end = await new Promise((resolve) => call.on("status", resolve));
  expect(end).toMatchObject({ code: status.FAILED_PRECONDITION, details: "invalid scope supplied" });
});

describe("a request that ends the process", () => {
  const queue = (change: Partial<Job>) => (fake: FakeVagrant) => {
    const request: QueueJobRequest = { job: { ...upJob(setUpShop(fake)), ...change }, expires_in: "" };
    return ["QueueJob", service.queueJob.requestSerialize(request)] as const;
  };
  const noTarget: UpsertTargetRequest = {};

  it.each([
    ["QueueJob of operation auth", queue({ operation: { $case: "auth", value: { check_only: false } } })],
    ["QueueJob of operation docs", queue({ operation: { $case: "docs", value: {} } })],
    ["QueueJob of operation validate", queue({ operation: { $case: "validate", value: {} } })],
    ["QueueJob of init_basis, before v2.4", queue({ operation: { $case: "init_basis", value: {} } })],
    ["FindTarget without a target", () => ["FindTarget", empty] as const],
    ["UpsertTarget without a target", () => ["UpsertTarget", service.upsertTarget.requestSerialize(noTarget)] as const],
    ["UpsertBox without a box", () => ["UpsertBox", empty] as const],
    [
      "ValidateJob without a target_runner",
      (fake: FakeVagrant) => {
        const id = setUpShop(fake).queue();
        return [
          "ValidateJob",
          service.validateJob.requestSerialize({ job: Job.fromPartial({ id }), disable_assign: false }),
        ] as const;
      },
    ],
  ])("%s: no answer, connections are gone, and another process can start", async (_, make) => {
    await using fake = await startFakeVagrant();
    const [rpc, request] = make(fake);
    using client = connectTo(fake);
    using bystander = connectTo(fake);
    const open = bystander.follow(setUpAgain(fake));
    await until(() => open.messages.length === 2, { message: "a stream" });
    expect(await client.raw(rpc, request)).toMatchObject(unavailable);
    expect(await open.end).toMatchObject(unavailable);
    expect(fake.crashed).toMatch(/^crashed: /);
    expect(await fake.crash).toBe(fake.crashed);
    expect(await bystander.raw("ListTargets", empty)).toMatchObject(unavailable);
    expect(() => fake.scrub()).not.toThrow();
    expect(() => fake.jobs.assign("any")).toThrow("the process is gone");
    await fake.restart();
    expect(fake.crashed).toBeUndefined();
    using again = connectTo(fake);
    expect(await again.raw("ListTargets", empty)).toMatchObject({ code: 0 });
  });

  /** A job to listen to, in the shop that is there or a new one. */
  function setUpAgain(fake: FakeVagrant): string {
    const [project] = fake.database.projects.keys();
    const [runner] = fake.database.runners.keys();
    if (project === undefined || runner === undefined) return setUpShop(fake).queue();
    const request = service.queueJob.requestSerialize({ job: upJob({ project, runner }), expires_in: "" });
    return service.queueJob.responseDeserialize(fake.call("QueueJob", request)).job_id;
  }

  it.each([
    ["labels", { labels: { a: "b" } }, "GetJob"],
    ["data_source_overrides", { data_source_overrides: { a: "b" } }, "_ListJobs"],
  ])("QueueJob with %s: the first read of it, and no process can start any more", async (_, change, rpc) => {
    await using fake = await startFakeVagrant();
    const [name, request] = queue(change)(fake);
    using client = connectTo(fake);
    const { code, bytes } = await client.raw(name, request);
    expect(code).toBe(0);
    const { job_id } = service.queueJob.responseDeserialize(bytes);
    const observation = rpc === "GetJob" ? service.getJob.requestSerialize({ job_id }) : empty;
    expect(await client.raw(rpc, observation)).toMatchObject(unavailable);
    await expect(fake.restart()).rejects.toThrow(`the server cannot start: job ${job_id}`);
    fake.database.jobs.delete(job_id);
    await fake.restart();
  });

  it("QueueJob with labels: a stream of it, too, and what a runner does", async () => {
    for (const observation of ["stream", "hook"]) {
      await using fake = await startFakeVagrant();
      const [name, request] = queue({ labels: { a: "b" } })(fake);
      using client = connectTo(fake);
      const { job_id } = service.queueJob.responseDeserialize((await client.raw(name, request)).bytes);
      if (observation === "hook") expect(() => fake.jobs.assign(job_id)).toThrow("labels");
      else expect(await client.follow(job_id).end).toMatchObject(unavailable);
      expect(await fake.crash).toMatch("labels");
    }
  });

  it.each([
    ["no target_runner", { target_runner: undefined }],
    ["an empty one", { target_runner: { target: undefined } }],
  ])("QueueJob with %s is refused, and the next process can't start", async (_, change) => {
    await using fake = await startFakeVagrant();
    const [name, request] = queue(change)(fake);
    using client = connectTo(fake);
    expect(await client.raw(name, request)).toMatchObject({ code: status.INTERNAL });
    expect(await client.jobs()).toEqual([]);
    expect(fake.crashed).toBeUndefined();
    await expect(fake.restart()).rejects.toThrow("no target_runner");
  });

  it("is none in v2.4 with its own operations", async () => {
    await using fake = await startFakeVagrant({ generation: "2.4" });
    const [name, request] = queue({ operation: { $case: "init_project", value: {} } })(fake);
    using client = connectTo(fake);
    expect(await client.raw(name, request)).toMatchObject({ code: 0 });
    expect((await client.jobs())[0]?.operation?.$case).toBe("init_project");
  });
});

describe("the process", () => {
  it("goes away and comes back as another one, on the same port", async () => {
    await using fake = await startFakeVagrant();
    const { run } = setUpShop(fake);
    const id = run();
    using client = connectTo(fake);
    const stream = client.follow(id);
    await until(() => stream.messages.length === 2, { message: "the stream" });
    await fake.goAway();
    expect(await stream.end).toMatchObject(unavailable);
    expect(await client.raw("GetVersionInfo", empty)).toMatchObject(unavailable);
    await fake.restart();
    using again = connectTo(fake);
    expect((await again.job(id)).state).toBe(Job_State.RUNNING);
    expect(fake.peers.size).toBe(2);
  });

  it("can be out of reach and live on", async () => {
    await using fake = await startFakeVagrant();
    const { run } = setUpShop(fake);
    const id = run();
    using client = connectTo(fake);
    const stream = client.follow(id);
    await until(() => stream.messages.length === 2, { message: "the stream" });
    await fake.cut();
    expect(await stream.end).toMatchObject(unavailable);
    fake.jobs.write(id, [line("in the dark")]);
    fake.jobs.complete(id);
    await fake.mend();
    using again = connectTo(fake);
    const later = again.follow(id);
    await later.end;
    expect(later.texts()).toEqual(["in the dark"]);
  });

  it("ends by itself after a command, as a built-in one does, with what ends then", async () => {
    await using fake = await startFakeVagrant({ dieAfter: 1 });
    const { run, target } = setUpShop(fake);
    target({ name: "gone", state: 3 });
    using client = connectTo(fake);
    const init = run({ operation: { $case: "init", value: {} } });
    fake.jobs.complete(init);
    const id = run();
    fake.jobs.complete(id);
    await until(async () => (await client.raw("GetVersionInfo", empty)).code === status.UNAVAILABLE, {
      message: "its end",
    });
    expect(fake.database.targets.size).toBe(0);
  });
});

it("counts calls, holds and lies, as a test wants it", async () => {
  let isLying = true;
  const target = Target.fromPartial({ name: "a lie" });
  const response = service.getTarget.responseSerialize({ target });
  await using fake = await startFakeVagrant({
    lie: ({ rpc }) => {
      if (!isLying) return undefined;
      if (rpc === "GetTarget") return { response };
      return rpc === "_ListJobs" ? { error: { code: status.NOT_FOUND, details: "a lie" } } : undefined;
    },
  });
  using client = connectTo(fake);
  expect((await client.raw("GetTarget", empty)).bytes).toEqual(response);
  expect(await client.raw("_ListJobs", empty)).toMatchObject({ code: status.NOT_FOUND, details: "a lie" });
  isLying = false;
  const release = fake.hold("_ListJobs");
  const waiting = client.jobs();
  await until(() => fake.calls("_ListJobs").inFlight === 1, { message: "the call" });
  release();
  expect(await waiting).toEqual([]);
  expect(fake.calls("_ListJobs")).toEqual({ made: 2, inFlight: 0, maxInFlight: 1 });
  expect(await client.raw("GetTarget", Buffer.from([0xff]))).toMatchObject({ code: status.INTERNAL });
});
