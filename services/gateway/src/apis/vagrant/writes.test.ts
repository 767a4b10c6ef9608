import type { JsonObject } from "@bufbuild/protobuf";
import { GetVersionInfoResponse, QueueJobRequest, ValidateJobRequest } from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { requestOf, sampleCalls } from "./testing/sample.ts";
import { type Harness, vagrantHarness } from "./testing/vagrant-harness.ts";

const session = "01A";
const id = "01M7WSXR6NFM73VJ0F879K4ZNP";
const runner = { id: { id: "R1" } };
const up = { command: { command: "up" }, target_runner: runner };
const target = { resource_id: "T1", name: "web1" };

let on: Harness;
beforeAll(async () => {
  on = await vagrantHarness();
  on.session(session);
});
afterAll(() => on[Symbol.asyncDispose]());
beforeEach(() => {
  on.sent.length = 0;
  on.refusals.length = 0;
  on.audited.length = 0;
  on.answers(() => ({ response: Buffer.from("answer") }));
});

const runs = (version: string) =>
  on.hold("version", { version: GetVersionInfoResponse.encode({ info: { version } }).finish() });

const jobs = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    kind: "job.queued",
    channel: "jobs",
    session,
    subject: `J${from + index}`,
  }));

describe("a call that would end a server or spoil its data is refused, and nothing is sent", () => {
  async function refuses(rpc: string, request: JsonObject | Uint8Array, why: RegExp) {
    await expect(on.call(rpc, request)).rejects.toMatchObject({ code: "refused_dangerous", message: why });
    expect(on.sent).toEqual([]);
    const method = `/hashicorp.vagrant.Vagrant/${rpc}`;
    expect(on.refusals).toMatchObject([{ who: "test", source: "default/alice/shop/vagrant", method }]);
  }

  it.each<[string, string, JsonObject, RegExp]>([
    ["labels", "QueueJob", { job: { ...up, labels: { a: "b" } } }, /labels crashes Vagrant/],
    ["a blank label", "QueueJob", { job: { ...up, labels: { "": "" } } }, /labels crashes Vagrant/],
    [
      "data_source_overrides",
      "QueueJob",
      { job: { ...up, data_source_overrides: { a: "b" } } },
      /data_source_overrides/,
    ],
    ["no target_runner", "QueueJob", { job: { command: {} } }, /without a target_runner/],
    ["an empty target_runner", "QueueJob", { job: { ...up, target_runner: {} } }, /without a target_runner/],
    [
      "a target_runner without an id",
      "QueueJob",
      { job: { ...up, target_runner: { id: {} } } },
      /without a target_runner/,
    ],
    ["the operation auth", "QueueJob", { job: { auth: {}, target_runner: runner } }, /operation auth crashes/],
    ["the operation docs", "QueueJob", { job: { docs: {}, target_runner: runner } }, /operation docs crashes/],
    ["the operation validate", "QueueJob", { job: { validate: {}, target_runner: runner } }, /operation validate/],
    ["no operation", "QueueJob", { job: { target_runner: runner } }, /no operation that Vagrant can store/],
    ["no target", "UpsertTarget", {}, /without a target crashes/],
    ["no box", "UpsertBox", {}, /without a box crashes/],
    ["a parent", "UpsertTarget", { target: { ...target, parent: { resource_id: "T0" } } }, /omit `parent`/],
    ["a parent of a new target", "UpsertTarget", { target: { name: "web1", parent: { resource_id: "T0" } } }, /parent/],
    ["a parent by name", "UpsertTarget", { target: { ...target, parent: { name: "web0" } } }, /parent/],
    ["a job that exists and no runner", "ValidateJob", { job: { id, command: {} } }, /without a target_runner/],
    ["a job that exists and an empty runner", "ValidateJob", { job: { id, target_runner: {} } }, /target_runner/],
  ])("%s: %s", (_, rpc, request, why) => refuses(rpc, request, why));

  it("also where the wire has it in two parts, which Vagrant takes together", async () => {
    const halves = [{ job: { labels: { a: "b" } } }, { job: up }].map((half) => requestOf("QueueJob", half));
    expect(QueueJobRequest.decode(Buffer.concat(halves)).job?.labels).toEqual({});
    await refuses("QueueJob", Buffer.concat(halves), /labels crashes/);
  });

  describe.each(["init_basis", "init_project"])("%s", (operation) => {
    const request = { job: { [operation]: {}, target_runner: runner } };

    it.each(["2.3.7", "2.3.10", "3.0.0", ""])("before 2.4, or not known: %j", async (version) => {
      runs(version);
      await refuses("QueueJob", request, /crashes Vagrant before 2\.4/);
    });

    it.each(["2.4.0", "2.4.3-dev", "2.10.1"])("passes in %s", async (version) => {
      runs(version);
      await on.call("QueueJob", request);
      expect(on.sent).toHaveLength(1);
    });
  });

  it("PruneOldJobs of more than 50 jobs", async () => {
    await on.add(...jobs(1, 50), ...jobs(1, 20));
    await on.call("PruneOldJobs");
    expect(on.sent).toHaveLength(1);
    on.sent.length = 0;
    await on.add(...jobs(51, 1));
    await refuses("PruneOldJobs", {}, /keeps the 50 oldest jobs/);
  });
});

describe("a harmless call goes to the upstream as it came", () => {
  it.each<[string, JsonObject]>([
    ["QueueJob", { job: up, expires_in: "garbage" }],
    ["QueueJob", { job: { ...up, command: { command: "up", labels: { a: "b" } } } }],
    ["QueueJob", { job: { ...up, id: "J1" } }],
    ["QueueJob", { job: { init: {}, target_runner: { any: {} } } }],
    ["QueueJob", { job: { noop: {}, target_runner: runner } }],
    ["QueueJob", {}],
    ["CancelJob", { job_id: "J1" }],
    ["ValidateJob", { job: { id, target_runner: runner } }],
    ["ValidateJob", { job: { id: "of no server", command: {} } }],
    ["ValidateJob", { job: { command: {} } }],
    ["ValidateJob", {}],
    ["UpsertBasis", { basis: { name: "" } }],
    ["UpsertBasis", {}],
    ["UpsertProject", { project: { name: "shop" } }],
    ["UpsertTarget", { target }],
    ["UpsertTarget", { target: { ...target, parent: target } }],
    ["UpsertTarget", { target: { ...target, parent: {} } }],
    ["DeleteTarget", {}],
    ["UpsertBox", { box: {} }],
    ["DeleteBox", {}],
  ])("%s %j", async (rpc, json) => {
    const request = Buffer.from(requestOf(rpc, json));
    expect(await on.call(rpc, json)).toEqual(Buffer.from("answer"));
    const method = `/hashicorp.vagrant.Vagrant/${rpc}`;
    expect(on.sent).toEqual([{ method, request, forwarded_method: method, forwarded_request: request, who: "test" }]);
  });

  it.each(sampleCalls().filter(({ rpc }) => /^(Queue|Upsert)/.test(rpc)))(
    "$rpc of a real command ($n)",
    async ({ rpc, request }) => {
      await on.call(rpc, request);
      expect(on.sent).toMatchObject([{ forwarded_request: Buffer.from(request) }]);
    },
  );

  it.each([
    ["QueueJob", QueueJobRequest],
    ["ValidateJob", ValidateJobRequest],
  ])("but for what only a server says of a job: %s", async (rpc, type) => {
    const own = {
      state: "SUCCESS",
      assigned_runner: { id: "R9" },
      queue_time: "2026-01-01T00:00:00Z",
      result: { run: { run_result: true } },
      expire_time: "2026-01-01T00:00:00Z",
    };
    const unknown = Buffer.from([0xaa, 0x05, 0x02, 0x68, 0x69]); // field 85
    const job = Buffer.concat([requestOf("QueueJob", { job: { ...up, id: "J1", ...own } }), unknown]);
    await on.call(rpc, job);
    const [{ request = Buffer.alloc(0), forwarded_request = Buffer.alloc(0) } = {}] = on.sent;
    expect(request).toEqual(job);
    expect(type.decode(forwarded_request)).toEqual(
      type.decode(Buffer.concat([requestOf("QueueJob", { job: { ...up, id: "J1" } }), unknown])),
    );
  });
});

describe("the answer", () => {
  it.each([
    [13, "name: must be unique."],
    [5, "job not found"],
    [9, "invalid expiry duration"],
  ])("is the upstream's, with its code %i", async (code, message) => {
    on.answers(() => ({ code, message }));
    await expect(on.call("QueueJob", { job: up })).rejects.toMatchObject({ name: "UpstreamError", code, message });
    expect(on.refusals).toEqual([]);
    expect(on.audited).toMatchObject([{ about: { outcome: `refused by the upstream, code ${code}` } }]);
  });

  it.each([
    ["observed", { effect_ms: 1 }],
    ["not observed in time", {}],
  ])("has a position at which the call is recorded, where its effect was %s", async (_, effect) => {
    const { positions } = on.deps;
    on.answers(() => effect);
    const { head } = await on.ask("CancelJob", { job_id: "J1" });
    const end = positions.written(await positions.lastOffset());
    expect(head?.position).toBe("effect_ms" in effect ? on.position(7) : end);
  });

  it("is recorded with who called, and without what was asked", async () => {
    await on.call("QueueJob", { job: up });
    const method = "/hashicorp.vagrant.Vagrant/QueueJob";
    const about = { method, source: "default/alice/shop/vagrant", outcome: "ok" };
    expect(on.audited).toEqual([{ action: "control.called", who: "test", kind: "token", workspace: "default", about }]);
  });

  it.each(["QueueJob", "ValidateJob", "UpsertTarget", "UpsertBox"])("to bytes that are no request: %s", async (rpc) => {
    const refused = { name: "UpstreamError", code: 13, message: "grpc: error unmarshalling request" };
    await expect(on.call(rpc, Buffer.from([0x0a, 0x05]))).rejects.toMatchObject(refused);
    expect(on.sent).toEqual([]);
  });

  it("is upstream_away while nobody records, and that is kept as a refusal", async () => {
    on.answers(() => {
      throw new TapedeckError("upstream_away", "nobody");
    });
    await expect(on.call("CancelJob", { job_id: "J1" })).rejects.toMatchObject({ code: "upstream_away" });
    expect(on.refusals).toMatchObject([{ error: { code: "upstream_away" } }]);
  });

  it("is no when the call names a moment", async () => {
    const pending = on.call("CancelJob", {}, { at: "x-5" });
    await expect(pending).rejects.toMatchObject({ code: "invalid_argument", details: { field: "at" } });
    expect(on.sent).toEqual([]);
  });

  it("is no when the session that the call names is unknown or has ended", async () => {
    await on.call("CancelJob", {}, { session });
    expect(on.sent).toHaveLength(1);
    await expect(on.call("CancelJob", {}, { session: "01Z" })).rejects.toMatchObject({ code: "unknown_session" });
    on.session(session, { ended: true });
    await expect(on.call("CancelJob", {}, { session })).rejects.toMatchObject({ code: "upstream_away" });
    expect(on.sent).toHaveLength(1);
  });

  it("is no, and says so, for tokens", async () => {
    for (const rpc of ["BootstrapToken", "GenerateInviteToken", "GenerateLoginToken", "ConvertInviteToken"]) {
      await expect(on.call(rpc)).rejects.toMatchObject({
        code: 12,
        message: expect.stringMatching(/no Vagrant tokens/),
      });
    }
    expect(on.sent).toEqual([]);
  });
});
