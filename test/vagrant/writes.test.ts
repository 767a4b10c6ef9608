import { status } from "@grpc/grpc-js";
import { connectTo } from "@tapedeck/fakes/vagrant/client";
import { type Shop, setUpShop, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  Job,
  Job_State,
  Operation_PhysicalState,
  QueueJobRequest,
  Target,
  UpsertBasisRequest,
  UpsertBoxRequest,
  UpsertProjectRequest,
  UpsertTargetRequest,
  VagrantService,
  ValidateJobRequest,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobRequest, kindsOf, startVagrantStack, type VagrantStack } from "./stack.ts";

let on: VagrantStack;
let shop: Shop;
beforeAll(async () => {
  on = await startVagrantStack();
  shop = setUpShop(on.fake);
});
afterAll(() => on[Symbol.asyncDispose]());

const writes = ["QueueJob", "CancelJob", "ValidateJob", "PruneOldJobs"];
/** The calls that reached the server and change something. */
const reached = () => on.fake.newestCalls.filter(({ rpc }) => writes.includes(rpc) || /^(Upsert|Delete)/.test(rpc));

describe("a write", () => {
  it("reaches the server, and its result is returned and recorded", async () => {
    const { client, fake } = on;
    const { call } = client;
    const { basis } = await call(
      VagrantService.upsertBasis,
      UpsertBasisRequest.fromPartial({ basis: { name: "other", path: "/home/dev/other" } }),
    );
    expect(fake.database.bases.get(basis?.resource_id ?? "")).toMatchObject({ name: "other" });
    const { project } = await call(
      VagrantService.upsertProject,
      UpsertProjectRequest.fromPartial({ project: { name: "web", path: "/home/dev/web", basis } }),
    );
    expect(fake.database.projects.get(project?.resource_id ?? "")).toMatchObject({ name: "web" });
    const { target } = await call(VagrantService.upsertTarget, {
      target: Target.fromPartial({ name: "db", project, state: Operation_PhysicalState.CREATED }),
      project: undefined,
    });
    expect(fake.database.targets.get(target?.resource_id ?? "")).toMatchObject({ name: "db" });
    const box = { name: "hashicorp/bionic64", version: "1.0.0", provider: "virtualbox", directory: "/boxes/1" };
    const echo = await call(VagrantService.upsertBox, UpsertBoxRequest.fromPartial({ box }));
    expect(echo.box).toMatchObject(box);
    const [boxId = ""] = fake.database.boxes.keys();

    const given = { ...upJob({ project: project?.resource_id ?? "", runner: shop.runner }) };
    const { job_id } = await call(VagrantService.queueJob, { job: given, expires_in: "30s" });
    expect((await on.waitForState(job_id, Job_State.QUEUED)).id).toBe(job_id);
    const verdict = await call(VagrantService.validateJob, {
      job: Job.fromPartial({ ...given, id: job_id }),
      disable_assign: false,
    });
    expect(verdict).toMatchObject({ valid: true, assignable: true });
    await call(VagrantService.cancelJob, { job_id });
    await on.waitForEvent("job.canceled", job_id);
    expect(kindsOf(await on.eventsOf("jobs"), job_id)).toEqual(["job.queued", "job.cancel_requested", "job.canceled"]);
    await call(VagrantService.pruneOldJobs, {});
    await call(VagrantService.deleteTarget, { target, project: undefined });
    expect(fake.database.targets.size).toBe(0);
    await call(VagrantService.deleteBox, { box: { resource_id: boxId, name: "", version: "", provider: "" } });
    expect(fake.database.boxes.size).toBe(0);
    expect(reached().map(({ rpc }) => rpc)).toEqual([
      ...["UpsertBasis", "UpsertProject", "UpsertTarget", "UpsertBox"],
      ...["QueueJob", "ValidateJob", "CancelJob", "PruneOldJobs", "DeleteTarget", "DeleteBox"],
    ]);

    const control = async () =>
      (await on.eventsOf("tapedeck")).flatMap(({ kind, detail }) =>
        detail?.$case === "control" ? [{ kind, method: detail.value.method.split("/").at(-1) }] : [],
      );
    await until(async () => (await control()).length >= 2 * reached().length, { message: "the last answer on record" });
    expect(await control()).toEqual(
      reached().flatMap(({ rpc }) => ["control.requested", "control.accepted"].map((kind) => ({ kind, method: rpc }))),
    );
  });

  it("is forwarded without the fields of a job that only a server may set", async () => {
    const job = { ...upJob(shop), state: Job_State.SUCCESS, queue_time: { seconds: 1n, nanos: 0 } };
    const { job_id } = await on.client.call(VagrantService.queueJob, { job, expires_in: "" });
    const { request } = reached().at(-1) ?? {};
    expect(QueueJobRequest.decode(request ?? Buffer.alloc(0)).job).toEqual(upJob(shop));
    await on.waitForState(job_id, Job_State.QUEUED);
  });

  it.each<[string, string, () => Uint8Array]>([
    ["a job with an id", "QueueJob", () => queueRequest({ id: "01A" })],
    ["no job", "QueueJob", () => new Uint8Array()],
    ["a job that expires in no time that there is", "QueueJob", () => queueRequest({}, "soon")],
    ["a job of nobody's project", "QueueJob", () => queueRequest({ scope: projectScope("01A") })],
    ["to cancel a job that nobody knows", "CancelJob", () => jobRequest("01A")],
    ["to cancel nothing", "CancelJob", () => new Uint8Array()],
    ["a basis of a name that there is", "UpsertBasis", () => basisRequest("default", "/elsewhere")],
    ["a basis with a blank path", "UpsertBasis", () => basisRequest("new", "")],
    ["to validate a job that nobody knows", "ValidateJob", () => validateRequest({ id: "01A" })],
    ["to delete no target", "DeleteTarget", () => new Uint8Array()],
  ])("is answered as the server answers it: %s", async (_, rpc, request) => {
    using client = connectTo(on.fake);
    const direct = await client.raw(rpc, Buffer.from(request()));
    const { code, message, bytes } = await on.client.ask(rpc, request());
    expect({ code, details: message, bytes }).toEqual(direct);
    expect(
      reached()
        .slice(-2)
        .map((call) => call.request),
    ).toEqual([Buffer.from(request()), Buffer.from(request())]);
  });

  it("that the server refuses is recorded with its code", async () => {
    await on.stack.drained();
    const before = (await on.eventsOf("tapedeck")).length;
    await on.client.ask("CancelJob", jobRequest("01B"));
    await until(async () => (await on.eventsOf("tapedeck")).length >= before + 2, {
      message: "both facts of the call",
    });
    const [requested, rejected] = (await on.eventsOf("tapedeck")).slice(before);
    expect(requested).toMatchObject({ kind: "control.requested" });
    expect(rejected).toMatchObject({
      kind: "control.rejected",
      detail: { value: { code: status.NOT_FOUND, message: "job not found" } },
    });
  });
});

describe("a write that would end the server or corrupt its data", () => {
  it.each<[string, string, () => Uint8Array]>([
    ["labels", "QueueJob", () => queueRequest({ labels: { a: "b" } })],
    ["data_source_overrides", "QueueJob", () => queueRequest({ data_source_overrides: { a: "b" } })],
    ["no target_runner", "QueueJob", () => queueRequest({ target_runner: undefined })],
    ["an empty target_runner", "QueueJob", () => queueRequest({ target_runner: { target: undefined } })],
    ["auth", "QueueJob", () => queueRequest({ operation: { $case: "auth", value: { check_only: false } } })],
    ["docs", "QueueJob", () => queueRequest({ operation: { $case: "docs", value: {} } })],
    ["validate", "QueueJob", () => queueRequest({ operation: { $case: "validate", value: {} } })],
    ["init_basis before 2.4", "QueueJob", () => queueRequest({ operation: { $case: "init_basis", value: {} } })],
    ["no target", "UpsertTarget", () => new Uint8Array()],
    ["no box", "UpsertBox", () => new Uint8Array()],
    ["a real parent", "UpsertTarget", parentRequest],
    ["no runner for a job that is there", "ValidateJob", () => validateRequest({ id: shop.queue() })],
  ])("is refused before it reaches the server: %s", async (_, rpc, request) => {
    const before = reached().length;
    const answer = await on.client.ask(rpc, request());
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, reason: "refused_dangerous" });
    expect(reached()).toHaveLength(before);
    expect(on.fake.crashed).toBeUndefined();
  });

  it("is refused before it reaches the server: pruning more than 50 jobs", async () => {
    const ids = Array.from({ length: 51 }, () => shop.queue());
    await on.waitForEvent("job.queued", ids.at(-1));
    const before = reached().length;
    const answer = await on.client.ask("PruneOldJobs");
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, reason: "refused_dangerous" });
    expect(reached()).toHaveLength(before);
    expect(on.fake.database.jobs.size).toBeGreaterThan(50);
  });
});

it("a server that is gone takes no writes", async () => {
  await on.fake.goAway();
  await on.waitForEvent("upstream.lost");
  expect(await on.client.ask("CancelJob", jobRequest("01A"))).toMatchObject({
    code: status.UNAVAILABLE,
    reason: "upstream_away",
  });
});

const projectScope = (resource_id: string) =>
  Job.fromPartial({ scope: { $case: "project", value: { resource_id } } }).scope;

function queueRequest(job: Partial<Job>, expires_in = ""): Uint8Array {
  return QueueJobRequest.encode({ job: { ...upJob(shop), ...job }, expires_in }).finish();
}

function validateRequest(job: Partial<Job>): Uint8Array {
  return ValidateJobRequest.encode(ValidateJobRequest.fromPartial({ job })).finish();
}

function basisRequest(name: string, path: string): Uint8Array {
  return UpsertBasisRequest.encode(UpsertBasisRequest.fromPartial({ basis: { name, path } })).finish();
}

function parentRequest(): Uint8Array {
  const parent = { resource_id: shop.target({ name: "parent" }) };
  const target = { name: "child", project: { resource_id: shop.project }, parent };
  return UpsertTargetRequest.encode(UpsertTargetRequest.fromPartial({ target })).finish();
}
