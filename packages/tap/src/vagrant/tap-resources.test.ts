import type { FakeCall } from "@tapedeck/fakes/vagrant/calls";
import { type FakeVagrant, type FakeVagrantOptions, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { commandResult, setUpShop, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  ListJobsResponse,
  Operation_PhysicalState as PhysicalState,
  Runner,
  UpsertBoxRequest,
} from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { describe, expect, it } from "vitest";
import { listen, when } from "./testing/tap-listen.ts";

type Tapped = ReturnType<typeof listen>;

const kindsOf = (tapped: Tapped) => tapped.resources().map(({ kinds }) => kinds.map(({ kind }) => kind));
const observationsAt = (tapped: Tapped, kind: string) =>
  tapped.resources().flatMap(({ kinds }) => kinds.filter((each) => each.kind === kind));
const idsOf = (tapped: Tapped, kind: string) =>
  observationsAt(tapped, kind).map(({ entries }) => entries.map(({ id }) => id));
const all = ["target", "project", "basis", "box", "runner"];

const withShop = async (options: FakeVagrantOptions = {}) => {
  const fake = await startFakeVagrant({ port: await ownPort(), ...options });
  return { fake, shop: setUpShop(fake), [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
};

function addBox(fake: FakeVagrant, name: string): void {
  const box = { name, provider: "virtualbox", version: "1.0.0", directory: `/boxes/${name}` };
  fake.call("UpsertBox", Buffer.from(UpsertBoxRequest.encode(UpsertBoxRequest.fromPartial({ box })).finish()));
}

describe("the first observation of resources", () => {
  it("has every kind, in the server's order, as it was answered", async () => {
    await using it = await withShop();
    const targets = ["web2", "web1", "db"].map((name) => it.shop.target({ name }));
    addBox(it.fake, "bionic");
    const other = it.fake.newId();
    it.fake.database.runners.set(other, Runner.fromPartial({ id: other }));
    const runnerOf = (id: string) => ({ target_runner: { target: { $case: "id" as const, value: { id } } } });
    it.shop.queue(runnerOf(other));
    it.shop.queue();
    it.shop.queue(runnerOf("nobody"));
    it.shop.queue();
    await using tapped = listen(it.fake.address);
    await when("it", () => tapped.resources().length > 0);
    expect(kindsOf(tapped)[0]).toEqual(all);
    const [first] = tapped.resources();
    const { jobs } = ListJobsResponse.decode(tapped.lists()[0] ?? Buffer.alloc(0));
    const named = new Set(
      jobs.map((job) => (job.target_runner?.target?.$case === "id" ? job.target_runner.target.value.id : "")),
    );
    expect(first?.kinds.map(({ entries }) => entries.map(({ id }) => id))).toEqual([
      targets,
      [it.shop.project],
      [it.shop.basis],
      [expect.any(String)],
      [...named].filter((id) => id !== "nobody"),
    ]);
    expect(named).toEqual(new Set([other, it.shop.runner, "nobody"]));
    expect(first?.kinds.some(({ same }) => same)).toBe(false);
    const gets = it.fake.newestCalls.filter(({ rpc }) => rpc.startsWith("Get") && !/Version|Stream/.test(rpc));
    for (const { id, bytes } of first?.kinds.flatMap(({ entries }) => entries) ?? []) {
      const get = gets.find(({ request }) => request.includes(id));
      const answer = it.fake.call(get?.rpc ?? "", get?.request ?? Buffer.alloc(0));
      expect(bytes).toEqual(get?.rpc === "GetRunner" ? answer : fieldsOf(answer, 1)[0]);
    }
    for (const rpc of ["ListTargets", "GetTarget", "ListBoxes", "GetRunner"]) {
      expect(it.fake.calls(rpc).maxInFlight).toBe(1);
    }
  });

  it("waits for the jobs, which name the runners, and keeps them from nothing", async () => {
    await using it = await withShop();
    it.shop.queue();
    const release = it.fake.hold("_ListJobs");
    await using tapped = listen(it.fake.address);
    await when("other calls", () => it.fake.calls("ListBoxes").made === 1);
    expect(tapped.resources()).toEqual([]);
    const hold = it.fake.hold("ListTargets");
    release();
    await when("it", () => tapped.lists().length > 0 && it.fake.streams() === 1);
    hold();
    await when("it", () => tapped.resources().length > 0);
    expect(idsOf(tapped, "runner")).toEqual([[it.shop.runner]]);
    const observations = tapped.observations("jobs").length;
    await when("more looks at jobs", () => tapped.observations("jobs").length > observations + 2);
    for (const rpc of ["ListTargets", "GetRunner"]) expect(it.fake.calls(rpc).made).toBe(1);
  });

  it("has the kinds that can be listed where one can't", async () => {
    let fails = true;
    const error = { code: 13, details: "no such table" };
    const lie = ({ rpc }: FakeCall) => (rpc === "ListBoxes" && fails ? { error } : undefined);
    await using it = await withShop({ lie });
    await using tapped = listen(it.fake.address);
    await when("it", () => tapped.resources().length > 0);
    expect(tapped.failures("resources")[0]).toMatchObject({ code: 13, message: "box: no such table" });
    expect(kindsOf(tapped)[0]).toEqual(all.filter((kind) => kind !== "box"));
    fails = false;
    await when("the boxes", () => kindsOf(tapped).some((kinds) => kinds.includes("box")));
  });

  it("does not take runners for gone where the jobs can't be listed", async () => {
    let fails = true;
    const error = { code: 13, details: "database is locked" };
    const lie = ({ rpc }: FakeCall) => (rpc === "_ListJobs" && fails ? { error } : undefined);
    await using it = await withShop({ lie });
    it.shop.queue();
    await using tapped = listen(it.fake.address);
    await when("a first look", () => tapped.resources().length > 0);
    expect(kindsOf(tapped)[0]).not.toContain("runner");
    expect(tapped.failures("resources")[0]).toMatchObject({ message: "runner: database is locked" });
    fails = false;
    await when("the runners", () => idsOf(tapped, "runner").length > 0);
    expect(idsOf(tapped, "runner")).toEqual([[it.shop.runner]]);
  });

  it("is whole again on the next connection", async () => {
    await using it = await withShop();
    it.shop.target({ name: "web1" });
    it.shop.queue();
    await using tapped = listen(it.fake.address);
    await when("it", () => tapped.resources().length > 0);
    await it.fake.cut();
    await when("the end", () => tapped.all("closed").length > 0);
    await it.fake.mend();
    await when("another", () => tapped.resources().some(({ kinds }, index) => index > 0 && kinds.length === 5));
    const again = tapped
      .resources()
      .slice(1)
      .find(({ kinds }) => kinds.length === 5);
    expect(again).toEqual(tapped.resources()[0]);
  });
});

describe("later observations of resources", () => {
  it("have the kinds that were polled: the same, or what they are now", async () => {
    await using it = await withShop();
    const id = it.shop.target({ name: "web1" });
    const job = it.shop.run();
    await using tapped = listen(it.fake.address);
    await when("the first", () => tapped.resources().length > 0 && it.fake.streams() === 1);
    it.shop.target({ resource_id: id, state: PhysicalState.CREATED });
    it.fake.jobs.complete(job, commandResult({ run_result: true }));
    await when("looks after the command", () =>
      ["project", "basis", "box"].every((kind) => observationsAt(tapped, kind).some(({ same }) => same)),
    );
    await when("the target's", () =>
      observationsAt(tapped, "target")
        .slice(1)
        .some(({ same }) => !same),
    );
    expect(
      kindsOf(tapped)
        .slice(1)
        .every((kinds) => kinds.length === 1),
    ).toBe(true);
    for (const { same, entries } of observationsAt(tapped, "box").slice(1)) expect([same, entries]).toEqual([true, []]);
    const [before, now] = observationsAt(tapped, "target").filter(({ same }) => !same);
    expect(now?.entries.map((entry) => entry.id)).toEqual([id]);
    expect(now?.entries[0]?.bytes).not.toEqual(before?.entries[0]?.bytes);
  });

  it("have a runner when a job names it", async () => {
    await using it = await withShop();
    await using tapped = listen(it.fake.address);
    await when("the first", () => tapped.resources().length > 0);
    it.shop.queue();
    await when("the runner", () => idsOf(tapped, "runner").length > 1);
    const other = it.fake.newId();
    it.fake.database.runners.set(other, Runner.fromPartial({ id: other }));
    it.shop.queue(upJob({ project: it.shop.project, runner: other }));
    await when("the other", () => idsOf(tapped, "runner").length > 2);
    expect(idsOf(tapped, "runner")).toEqual([[], [it.shop.runner], [it.shop.runner, other]]);
  });

  it("name the runners that the server has forgotten, when the job is over that they came with", async () => {
    await using it = await withShop();
    const job = it.shop.run();
    await using tapped = listen(it.fake.address);
    await when("the first", () => tapped.resources().length > 0 && it.fake.streams() === 1);
    it.fake.database.runners.delete(it.shop.runner);
    it.fake.jobs.complete(job, commandResult({ run_result: true }));
    await when("it", () => observationsAt(tapped, "runner").some(({ missing }) => missing.length > 0));
    const [now] = observationsAt(tapped, "runner").slice(-1);
    expect(now).toMatchObject({ entries: [], missing: [it.shop.runner] });
  });

  it("leave out what has gone since the list", async () => {
    await using it = await withShop({
      lie: ({ rpc, request }) =>
        rpc === "GetTarget" && request.includes(removed)
          ? { error: { code: 5, details: "record not found" } }
          : undefined,
    });
    const removed = it.shop.target({ name: "web1" });
    const other = it.shop.target({ name: "web2" });
    await using tapped = listen(it.fake.address);
    await when("the first", () => tapped.resources().length > 0);
    expect(idsOf(tapped, "target")).toEqual([[other]]);
    expect(tapped.failures("resources")).toEqual([]);
  });

  it("are none where one resource can't be got, or is too slow", async () => {
    const answers = [{ error: { code: 13, details: "unknown type" } }, undefined];
    await using it = await withShop({ lie: ({ rpc }) => (rpc === "GetTarget" ? answers.shift() : undefined) });
    it.shop.target({ name: "web1" });
    await using tapped = listen(it.fake.address, { timeout: "2000" });
    const failures = () => tapped.failures("resources").map(({ message }) => message);
    await when("a failure", () => failures().includes("target: unknown type"));
    await when("targets", () => observationsAt(tapped, "target").length === 1);
    const release = it.fake.hold("GetTarget");
    it.shop.queue();
    await when("another", () => failures().includes("target: no answer within 2000 ms"));
    expect(observationsAt(tapped, "target")).toHaveLength(1);
    release();
    await when("targets again", () => observationsAt(tapped, "target").length > 1);
  });

  it("keep what this version does not know", async () => {
    const target = Buffer.concat([Buffer.from([0x0a, 1, 0x61]), Buffer.from([0xba, 0x3e, 3, 1, 2, 3])]);
    const response = Buffer.concat([Buffer.from([0x0a, target.byteLength]), target, Buffer.from([0x9a, 0x3f, 1, 9])]);
    await using it = await withShop({ lie: ({ rpc }) => (rpc === "GetTarget" ? { response } : undefined) });
    it.shop.target({ name: "web1" });
    await using tapped = listen(it.fake.address);
    await when("the first", () => tapped.resources().length > 0);
    expect(observationsAt(tapped, "target")[0]?.entries[0]?.bytes).toEqual(target);
  });
});
