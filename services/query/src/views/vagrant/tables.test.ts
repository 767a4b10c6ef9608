import { Job, job_StateToJSON, Operation_PhysicalState, Target_Machine } from "@tapedeck/proto/vagrant/vagrant";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { describe, expect, it } from "vitest";
import type { VagrantJobVersionRow } from "../../db/schema.ts";
import { tablesAfter } from "../../testing/history-tests.ts";
import { type Scenario, scenario } from "../../testing/scenario.ts";
import { vagrantOrder } from "../../testing/tables.ts";
import { ulid, type VagrantSession, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";

const machineRecord = {
  type_url: "type.googleapis.com/hashicorp.vagrant.Target.Machine",
  value: Buffer.from(
    Target_Machine.encode(
      Target_Machine.fromPartial({
        id: "vm-1",
        state: { id: "running" },
        box: { name: "hashicorp/bionic64", version: "1.0.282" },
      }),
    ).finish(),
  ),
};

/** The rows of every table after the events of a server. */
async function reported(given: (server: VagrantSession, script: Scenario) => void, batch = 1_000) {
  const script = scenario(vagrantShop);
  given(vagrantSession("S", script), script);
  const views = { command_times: "start_position", vagrant_command_times: "start_position" };
  return await tablesAfter(script, { ...vagrantOrder, ...views }, batch);
}

describe("the rows of a server, in one batch and event by event", () => {
  const life = (server: VagrantSession) => {
    server.there("basis", "B", { name: "default", path: "/home/alice/.vagrant.d" });
    server.there("project", "P", {
      name: "shop",
      path: "/home/alice/shop",
      basis: { resource_id: "B", name: "default" },
    });
    server.described();
    const target = { name: "web1", project: { resource_id: "P", name: "shop" }, provider: "virtualbox" };
    server.reported("target", "T", { ...target, state: Operation_PhysicalState.NOT_CREATED });
    server.reported("box", "X", {
      name: "hashicorp/bionic64",
      version: "1.0.282",
      provider: "virtualbox",
      directory: "/b",
    });
    server.reported("runner", "R", { by_id_only: true, components: [{ type: 1, name: "command" }] });
    server.reported("target", "T", {
      ...target,
      uuid: "u-1",
      state: Operation_PhysicalState.CREATED,
      record: machineRecord,
    });
    server.removed("box", "X", { at: 5_000 });
  };

  it.each([1_000, 1])("stays in the tables with its messages (batches of %i)", async (batch) => {
    const found = await reported(life, batch);
    const row = { session: "S", source: vagrantShop, gone: false, gone_at: null, message: expect.any(Buffer) };
    expect(found.vagrant_targets).toEqual([
      {
        ...row,
        id: "T",
        name: "web1",
        project_id: "P",
        project_name: "shop",
        state: "CREATED",
        provider: "virtualbox",
        uuid: "u-1",
        machine_id: "vm-1",
        machine_state: "running",
        box_name: "hashicorp/bionic64",
        box_version: "1.0.282",
        first_position: offsetOf(2),
        last_position: offsetOf(5),
      },
    ]);
    expect(found.vagrant_projects).toMatchObject([
      {
        ...row,
        id: "P",
        name: "shop",
        path: "/home/alice/shop",
        basis_id: "B",
        basis_name: "default",
        first_position: offsetOf(1),
      },
    ]);
    expect(found.vagrant_bases).toMatchObject([{ ...row, id: "B", name: "default", path: "/home/alice/.vagrant.d" }]);
    expect(found.vagrant_boxes).toMatchObject([
      { name: "hashicorp/bionic64", version: "1.0.282", gone: true, gone_at: "2026-11-20T09:00:05.000000Z" },
    ]);
    expect(found.vagrant_runners).toMatchObject([
      { ...row, id: "R", by_id_only: true, components: [{ type: "COMMAND", name: "command" }] },
    ]);
  });
});

describe("a command's life, in one batch and event by event", () => {
  const life = (server: VagrantSession) => {
    server.began();
    server.queued(ulid(1), "up", { at: 100 });
    server.assigned(ulid(1), { at: 200 });
    server.started(ulid(1), { at: 300 });
    server.text(ulid(1), "==> web1: Booting VM...");
    server.finished(ulid(1), 127, { at: 5_300 });
  };

  it.each([1_000, 1])("is a row with its times and its end (batches of %i)", async (batch) => {
    const found = await reported(life, batch);
    expect(found.vagrant_jobs).toEqual([
      {
        session: "S",
        source: vagrantShop,
        job: ulid(1),
        operation: "command",
        command: "up",
        args: ["--provision", "web1"],
        scope: "project",
        scope_id: "P1",
        scope_name: "shop",
        runner: "R1",
        state: "SUCCESS",
        stale: false,
        queued_at: "2026-11-20T09:00:00.100000Z",
        assigned_at: "2026-11-20T09:00:00.200000Z",
        started_at: "2026-11-20T09:00:00.300000Z",
        cancel_requested_at: null,
        completed_at: "2026-11-20T09:00:05.300000Z",
        expires_at: null,
        outcome: "failed",
        exit_code: 127,
        error_code: "127",
        error: `${ulid(1)} did not work`,
        first_position: offsetOf(3),
        last_position: offsetOf(9),
        message: expect.any(Buffer),
      },
    ]);
    const versions = found.vagrant_job_versions as readonly VagrantJobVersionRow[];
    expect(versions.map(({ job, position, message }) => [job, position, stateOf(message)])).toEqual([
      [ulid(1), offsetOf(3), "QUEUED"],
      [ulid(1), offsetOf(4), "WAITING"],
      [ulid(1), offsetOf(5), "RUNNING"],
      [ulid(1), offsetOf(8), "SUCCESS"],
    ]);
    expect(found.command_times).toMatchObject([
      {
        workspace: "acme",
        developer: "alice",
        project: "shop",
        session: "S",
        vagrant_version: "2.3.7",
        command: "up",
        job: ulid(1),
        args: ["--provision", "web1"],
        scope: "project",
        scope_name: "shop",
        duration_ms: 5_000,
        outcome: "failed",
        exit_code: 127,
        error_code: "127",
      },
    ]);
  });
});

describe("the subject of a command, in one batch and event by event", () => {
  const life = (server: VagrantSession) => {
    server.began();
    server.reported("target", "T", {
      name: "web1",
      project: { resource_id: "P1", name: "shop" },
      provider: "virtualbox",
      record: machineRecord,
    });
    const abouts = [{ id: "T", name: "web1" }, { id: "unknown", name: "web9" }, undefined];
    for (const [index, about] of abouts.entries()) {
      server.queued(ulid(index), "up", { at: index * 10_000 }, about);
      server.started(ulid(index), { at: index * 10_000 + 100 });
      server.finished(ulid(index), undefined, { at: index * 10_000 + 2_000 + index });
    }
  };

  it.each([1_000, 1])("is a machine with its box and provider, or no single one (batches of %i)", async (batch) => {
    const found = await reported(life, batch);
    const nothing = { provider: null, box: null, box_version: null };
    expect(found.vagrant_command_times).toMatchObject([
      {
        machine: "web1",
        provider: "virtualbox",
        box: "hashicorp/bionic64",
        box_version: "1.0.282",
        command: "up",
        duration_ms: 1_900,
        outcome: "succeeded",
        started_at: "2026-11-20T09:00:00.100000Z",
      },
      { machine: "web9", ...nothing, duration_ms: 1_901 },
      { machine: null, ...nothing, duration_ms: 1_902 },
    ]);
  });
});

it("a job that was canceled before it began, a lost job, and a job that outlived its session", async () => {
  const found = await reported((server) => {
    for (const number of [1, 2, 3]) server.queued(ulid(number), "up");
    server.canceled(ulid(1), { at: 1_000 });
    server.started(ulid(2));
    server.lost(ulid(2));
    server.started(ulid(3));
    server.ended();
  });
  expect(found.vagrant_jobs).toMatchObject([
    { state: "ERROR", outcome: "canceled", completed_at: null, cancel_requested_at: "2026-11-20T09:00:01.000000Z" },
    { state: "RUNNING", outcome: "unknown", exit_code: null },
    { state: "RUNNING", outcome: "unknown" },
  ]);
});

it("an event with only a job's id keeps what was known about the job", async () => {
  const found = await reported((server, { add }) => {
    server.queued(ulid(1), "up", { at: 10 });
    const fact = { kind: "job.lost", subject: ulid(1), detail: { $case: "job" as const, value: { job: ulid(1) } } };
    add({ session: "S", channel: "jobs", ...fact });
  });
  const args = ["--provision", "web1"];
  const queued_at = "2026-11-20T09:00:00.010000Z";
  expect(found.vagrant_jobs).toMatchObject([
    { command: "up", args, scope: "project", runner: "R1", state: "QUEUED", queued_at, outcome: "unknown" },
  ]);
});

it("a job whose message exceeds the log's limit has a row and no version", async () => {
  const found = await reported((_server, { add }) => {
    const original = { type: "hashicorp.vagrant.Job", size: 8_000_000n };
    const detail = { $case: "job" as const, value: { operation: "command", command: "up", state: "SUCCESS" } };
    add({ session: "S", channel: "jobs", kind: "job.succeeded", subject: ulid(1), detail, original });
  });
  expect(found.vagrant_jobs).toMatchObject([{ command: "up", state: "SUCCESS", completed_at: null, message: null }]);
  expect(found.vagrant_job_versions).toEqual([]);
});

it("an erased session leaves nothing", async () => {
  const found = await reported((server, script) => {
    server.there("basis", "B", { name: "default" });
    server.described();
    server.queued(ulid(1));
    server.started(ulid(1));
    script.add({ kind: "session.erased", session: "S", subject: "S" });
  });
  expect(Object.entries(found).filter(([, left]) => left.length > 0)).toEqual([]);
});

function stateOf(message: Uint8Array): string {
  return job_StateToJSON(Job.decode(message).state);
}
