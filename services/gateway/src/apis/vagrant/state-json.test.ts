import { Basis, Box, GetVersionInfoResponse, Job, Job_State, Target } from "@tapedeck/proto/vagrant/vagrant";
import { expect, it } from "vitest";
import { vagrantStateJson } from "./state-json.ts";
import { sampleCalls, within } from "./testing/sample.ts";

const sample = (rpc: string) => sampleCalls().flatMap((call) => (call.rpc === rpc && call.wire ? [call.wire] : []));
const target = (type_url: string, value: Buffer) =>
  Target.encode(Target.fromPartial({ resource_id: "T1", record: { type_url, value } })).finish();
const ofTargets = (...targets: Uint8Array[]) => vagrantStateJson([[], targets]) as { targets: object[] };

it("of a server that has recorded nothing is empty", () => {
  const none = { targets: [], projects: [], bases: [], boxes: [], runners: [], jobs: [] };
  expect(vagrantStateJson([])).toEqual({ version: null, ...none });
});

it("of a real server has the names of its messages", () => {
  const version = sample("GetVersionInfo");
  const targets = sample("GetTarget").slice(-1).flatMap(within);
  const boxes = sample("GetBox").flatMap(within);
  const jobs = within(sample("_ListJobs").at(-1));
  const state = vagrantStateJson([version, targets, [], [], boxes, sample("GetRunner").slice(-1), jobs]);
  expect(state).toMatchObject({
    version: { api: { current: 1, minimum: 1 }, version: "2.3.7" },
    targets: [
      {
        name: "web2",
        record: {
          "@type": "type.googleapis.com/hashicorp.vagrant.Target.Machine",
          state: { short_description: "not created" },
        },
      },
    ],
    boxes: [{ name: "hashicorp/bionic64", metadata: { provider: "virtualbox" }, last_update: "1970-01-01T00:00:00Z" }],
    runners: [{ by_id_only: true, components: [{ type: "COMMAND", name: "Command" }, {}, {}] }],
    jobs: [
      { init: {}, state: "SUCCESS", result: {} },
      { command: { command: "up" }, state: "SUCCESS", result: { run: { run_error: { code: 2 } } } },
    ],
  });
  expect(JSON.stringify(state)).not.toContain("commands");
});

it("has what it does not know, or can't read, in base64", () => {
  const unknown = target("type.googleapis.com/hashicorp.vagrant.Who", Buffer.from("hi"));
  const broken = target("type.googleapis.com/hashicorp.vagrant.Target.Machine", Buffer.from([0x0a, 0x05]));
  expect(ofTargets(unknown, broken).targets).toEqual([
    { resource_id: "T1", record: { "@type": "type.googleapis.com/hashicorp.vagrant.Who", value: "aGk=" } },
    {
      resource_id: "T1",
      record: { "@type": "type.googleapis.com/hashicorp.vagrant.Target.Machine", value: "CgU=" },
    },
  ]);
});

it("has times that JSON has no words for by their fields", () => {
  const seconds = 1n << 60n;
  const box = Box.encode(Box.fromPartial({ resource_id: "X1", last_update: { seconds } })).finish();
  expect(vagrantStateJson([[], [], [], [], [box]])).toMatchObject({
    boxes: [{ last_update: { seconds: `${seconds}` } }],
  });
});

it("leaves Vagrantfiles out", () => {
  const basis = Basis.fromPartial({ resource_id: "B1", configuration: { raw: Buffer.from("x") } });
  expect(vagrantStateJson([[], [], [], [Basis.encode(basis).finish()]])).toMatchObject({
    bases: [{ resource_id: "B1" }],
  });
  expect(JSON.stringify(vagrantStateJson([[], [], [], [Basis.encode(basis).finish()]]))).not.toContain("configuration");
});

it("has all jobs that are not over, and the newest 20 that are, in their order", () => {
  const job = (index: number, state: Job_State) => Job.encode(Job.fromPartial({ id: `J${index}`, state })).finish();
  const jobs = Array.from({ length: 30 }, (_, index) =>
    job(index, index % 10 === 0 ? Job_State.RUNNING : index % 2 === 0 ? Job_State.ERROR : Job_State.SUCCESS),
  );
  const state = vagrantStateJson([[], [], [], [], [], [], jobs]) as { jobs: { id: string }[] };
  expect(state.jobs.map(({ id }) => Number(id.slice(1)))).toEqual([
    0,
    ...Array.from({ length: 22 }, (_, at) => at + 8),
  ]);
});

it("of a version alone", () => {
  const bytes = GetVersionInfoResponse.encode({ info: { version: "2.4.3" } }).finish();
  expect(vagrantStateJson([[bytes]])).toMatchObject({ version: { version: "2.4.3" } });
});

it("has bytes that it can't read as they came", () => {
  // resource_id as a number, which is an unknown field to Vagrant.
  const odd = Buffer.concat([Target.encode(Target.fromPartial({ resource_id: "T1" })).finish(), Buffer.of(0x08, 0x7f)]);
  const job = Buffer.concat([Job.encode(Job.fromPartial({ id: "J1" })).finish(), Buffer.of(0x08, 0x7f)]);
  expect(vagrantStateJson([[], [odd], [], [], [], [], [job]])).toMatchObject({
    targets: [{ "@type": "hashicorp.vagrant.Target", value: odd.toString("base64") }],
    jobs: [{ "@type": "hashicorp.vagrant.Job", value: job.toString("base64") }],
  });
});
