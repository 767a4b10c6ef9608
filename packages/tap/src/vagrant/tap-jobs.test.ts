import { line, textOf } from "@tapedeck/fakes/vagrant/client";
import { type FakeVagrant, type FakeVagrantOptions, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { commandResult, setUpShop, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  type Job,
  Job_State,
  ListJobsResponse,
  QueueJobRequest,
  QueueJobResponse,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { listen, when } from "./testing/tap-listen.ts";

const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => line(String(from + index)));
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index));

/** A fake with a shop, and a tap that has polled once. */
async function tappedShop(
  options: FakeVagrantOptions = {},
  before: (fake: FakeVagrant, shop: Shop) => void = () => {},
) {
  const fake = await startFakeVagrant({ port: await ownPort(), ...options });
  const shop = setUpShop(fake);
  before(fake, shop);
  const tapped = listen(fake.address);
  await when("a look", () => tapped.lists().length > 0);
  const texts = (id: string) => tapped.terminals(id).flatMap(({ events }) => events.map(textOf));
  return {
    fake,
    shop,
    tapped,
    texts,
    jobs: fake.jobs,
    listed: () => tapped.lists().map((list) => ListJobsResponse.decode(list).jobs),
    [Symbol.asyncDispose]: async () => {
      await tapped[Symbol.asyncDispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}
type Shop = ReturnType<typeof setUpShop>;

describe("lists of jobs", () => {
  it("are given as they were answered, once as long as nothing changes", async () => {
    await using it = await tappedShop();
    const id = it.shop.queue();
    await when("the job", () => it.tapped.lists().length === 2);
    await when(
      "the same again",
      () => it.tapped.observations("jobs").filter(({ $case }) => $case === "same").length > 3,
    );
    expect(it.tapped.lists()).toHaveLength(2);
    expect(it.tapped.lists()[1]).toEqual(it.fake.call("_ListJobs", Buffer.alloc(0)));
    expect(it.listed().map((jobs) => jobs.map((job) => job.id))).toEqual([[], [id]]);
    expect(it.fake.calls("_ListJobs").maxInFlight).toBe(1);
  });

  it("are whole again after a while, even if nothing changes", async () => {
    const real = performance.now.bind(performance);
    let ahead = 0;
    vi.spyOn(performance, "now").mockImplementation(() => real() + ahead);
    onTestFinished(() => void vi.restoreAllMocks());
    await using it = await tappedShop();
    await when("some looks", () => it.tapped.observations("jobs").length > 3);
    expect(it.tapped.lists()).toHaveLength(1);
    ahead = 10_000;
    await when("another whole one", () => it.tapped.lists().length === 2);
    expect(it.tapped.lists()[1]).toEqual(it.tapped.lists()[0]);
  });

  it("may be larger than what gRPC takes by default", async () => {
    const long = "x".repeat(50_000);
    await using it = await tappedShop({}, (fake, shop) => {
      for (let n = 0; n < 120; n++)
        fake.jobs.complete(shop.run(), commandResult({ run_error: { code: 2, message: long, details: [] } }));
    });
    expect(it.tapped.lists()[0]?.byteLength).toBeGreaterThan(5 * 1024 * 1024);
  });

  it("come before what the streams of their jobs emit", async () => {
    await using it = await tappedShop();
    const ids = [it.shop.queue(), it.shop.run()];
    await when("streams", () => ids.every((id) => it.tapped.streamed(id).length > 0));
    const observations = it.tapped.observations("jobs");
    for (const id of ids) {
      const listed = observations.findIndex(
        (seen) => seen.$case === "all" && ListJobsResponse.decode(seen.value).jobs.some((job) => job.id === id),
      );
      const streamed = observations.findIndex((seen) => seen.$case === "streamed" && seen.value.job === id);
      expect(listed).toBeLessThan(streamed);
    }
  });

  it("that can't be read are kept", async () => {
    const response = Buffer.from([0x0a, 200, 1]);
    await using fake = await startFakeVagrant({ lie: ({ rpc }) => (rpc === "_ListJobs" ? { response } : undefined) });
    await using tapped = listen(fake.address);
    await when("it is the same again", () => tapped.observations("jobs").some(({ $case }) => $case === "same"));
    expect(tapped.lists()).toEqual([response]);
    expect(fake.calls("GetJobStream").made).toBe(0);
  });
});

describe("a list that fails", () => {
  it("because a row is missing: what is known is asked for, and streams go on", async () => {
    await using it = await tappedShop();
    const running = it.shop.run();
    const [old = "", newest = ""] = [it.shop.run(), it.shop.run()].toSorted();
    for (const id of [old, newest]) it.jobs.complete(id, commandResult({ run_result: true }));
    await when(
      "all streams",
      () =>
        it.tapped.ends(newest).length > 0 && it.tapped.ends(old).length > 0 && it.tapped.streamed(running).length > 0,
    );
    await when("observations", () =>
      it
        .listed()
        .at(-1)
        ?.every(({ id, state }) => (id === running) === (state === Job_State.RUNNING)),
    );
    const row = it.fake.database.jobs.get(old);
    it.fake.database.jobs.delete(old);
    await when("two rounds", () => it.tapped.ones().length >= 4);
    expect(it.tapped.failures("jobs")[0]).toMatchObject({
      code: 5,
      message: "failed to locate job (record not found)",
    });
    const ones = it.tapped.ones().map(({ id, code }) => [id, code]);
    expect(ones.slice(0, 4)).toEqual([
      [newest, 0],
      [running, 0],
      [newest, 0],
      [running, 0],
    ]);
    expect(it.tapped.ones()[1]?.bytes).toEqual(jobBytes(it.fake, running));
    it.jobs.write(running, [line("still there")]);
    await when("its output", () => it.texts(running).includes("still there"));
    if (row) it.fake.database.jobs.set(old, row);
    const lists = it.tapped.lists().length;
    await when("a list", () => it.tapped.observations("jobs").at(-1)?.$case === "same");
    expect(it.tapped.lists().length - lists).toBeLessThanOrEqual(1);
    expect(it.fake.calls("GetJob").maxInFlight).toBe(1);
    expect(it.fake.peers.size).toBe(1);
  });

  it("does not hide a job that was queued through the tap", async () => {
    await using it = await tappedShop();
    const lost = it.shop.queue();
    await when("the job", () => it.tapped.streamed(lost).length > 0);
    it.fake.database.jobs.delete(lost);
    await when("a failure", () => it.tapped.failures("jobs").length > 0);
    const request = Buffer.from(QueueJobRequest.encode({ job: upJob(it.shop), expires_in: "" }).finish());
    const answer = await it.tapped.control({ call: "C", method: VagrantService.queueJob.path, request });
    const id = QueueJobResponse.decode(answer.response).job_id;
    await when("its stream", () => it.tapped.streamed(id).length > 0);
    expect(it.tapped.ones().findLast((one) => one.id === id)).toMatchObject({ code: 0, bytes: jobBytes(it.fake, id) });
  });

  it("is emitted, and the next one is good", async () => {
    let fails = true;
    const error = { code: 13, details: "database is locked" };
    await using fake = await startFakeVagrant({
      lie: ({ rpc }) => (rpc === "_ListJobs" && fails ? { error } : undefined),
    });
    const id = setUpShop(fake).run();
    await using tapped = listen(fake.address);
    await when("failures", () => tapped.failures("jobs").length > 1);
    expect(tapped.failures("jobs")[0]).toMatchObject({ code: 13, message: "database is locked" });
    fails = false;
    await when("the stream", () => tapped.streamed(id).length > 0);
    expect(fake.calls("GetJob").made).toBe(0);
    expect(fake.peers.size).toBe(1);
  });

  it("because it hangs keeps neither streams nor resources waiting", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    const id = shop.run();
    await using tapped = listen(fake.address, { timeout: "100" });
    await when("the stream", () => tapped.streamed(id).length > 0);
    const release = fake.hold("_ListJobs");
    await when("a failure", () => tapped.failures("jobs").length > 0);
    expect(tapped.failures("jobs")[0]).toMatchObject({ code: 4, message: "no answer within 100 ms" });
    const before = tapped.resources().length;
    fake.jobs.write(id, [line("one")]);
    fake.jobs.complete(id, commandResult({ run_result: true }));
    await when(
      "the end, and another look at resources",
      () => tapped.ends(id).length === 2 && tapped.resources().length > before,
    );
    release();
    await when("a list", () => tapped.lists().length > 1);
    expect(fake.calls("_ListJobs").maxInFlight).toBe(1);
  });
});

function jobBytes(fake: FakeVagrant, job_id: string): Buffer {
  return fake.call("GetJob", VagrantService.getJob.requestSerialize({ job_id }));
}

describe("the stream of a job", () => {
  it("is followed through its life, and gives all of its output again when it is over", async () => {
    await using it = await tappedShop();
    const id = it.shop.queue();
    await when("the stream", () => it.tapped.streamed(id).length === 2);
    it.jobs.assign(id);
    it.jobs.ack(id);
    it.jobs.write(id, lines(0, 2));
    it.jobs.write(id, lines(2, 70));
    it.jobs.complete(id, commandResult({ run_result: true }));
    await when("both ends", () => it.tapped.ends(id).length === 2);
    const [first, second, ...others] = it.tapped.openings(id);
    expect(others).toEqual([]);
    expect(first).toEqual([
      ...["open 0", "state 0", "state 0", "state 0"],
      ...["terminal 0", "terminal 2", "terminal 66", "state 70", "complete 70"],
    ]);
    expect(second).toEqual(["open 0", "state 0", "terminal 0", "terminal 64", "complete 70"]);
    expect(it.texts(id)).toEqual([...numbers(0, 70), ...numbers(0, 70)]);
    expect(new Set(it.tapped.streamed(id).map(({ stream }) => stream))).toEqual(
      new Set(it.tapped.ends(id).map(({ stream }) => stream)),
    );
    expect(it.tapped.ends(id).map(({ code }) => code)).toEqual([0, 0]);
    const made = it.fake.calls("_ListJobs").made;
    await when("more looks", () => it.fake.calls("_ListJobs").made > made + 3);
    expect(it.fake.calls("GetJobStream").made).toBe(2);
  });

  it("gives after the end what was dropped before it", async () => {
    await using it = await tappedShop();
    const id = it.shop.run();
    await when("the stream", () => it.tapped.streamed(id).length === 2);
    it.jobs.write(id, lines(0, 2));
    const release = it.fake.holdStreams("output");
    it.jobs.write(id, lines(2, 200));
    it.jobs.complete(id);
    release();
    await when("both ends", () => it.tapped.ends(id).length === 2);
    expect(it.texts(id)).toEqual([...numbers(0, 2), ...numbers(0, 200)]);
  });

  it("of a job that is over when it is seen is opened once, of no more than 8 at a time", async () => {
    const ids: string[] = [];
    let release = () => {};
    await using it = await tappedShop({}, (fake, shop) => {
      release = fake.holdStreams("output");
      for (let n = 0; n < 40; n++) {
        const id = shop.run();
        ids.push(id);
        fake.jobs.write(id, lines(0, 3));
        fake.jobs.complete(id, commandResult({ run_result: true }));
      }
      ids.push(shop.run());
    });
    const running = ids.pop() ?? "";
    await when("streams", () => it.fake.streams() >= 9);
    release();
    await when("all ends", () => ids.every((id) => it.tapped.ends(id).length === 1));
    for (const id of ids) {
      expect(it.texts(id)).toEqual(["0", "1", "2"]);
      expect(it.tapped.openings(id)).toEqual([["open 0", "state 0", "terminal 0", "complete 3"]]);
    }
    expect(it.tapped.streamed(running).length).toBeGreaterThan(0);
    const { made, maxInFlight } = it.fake.calls("GetJobStream");
    expect(made).toBe(41);
    expect(maxInFlight).toBe(9);
  });

  it("that can't be opened again is tried twice", async () => {
    await using it = await tappedShop({ remembered: 0 });
    const id = it.shop.run();
    await when("the stream", () => it.tapped.streamed(id).length === 2);
    it.jobs.complete(id);
    await when("all ends", () => it.tapped.ends(id).length === 3);
    expect(it.tapped.ends(id).map(({ code, message }) => [code, message])).toEqual([
      [0, "OK"],
      [5, "job not found"],
      [5, "job not found"],
    ]);
    await when("the job to be gone", () => it.listed().at(-1)?.length === 0);
    expect(it.fake.calls("GetJobStream").made).toBe(3);
  });

  it("that is lost while the job runs is opened again", async () => {
    await using it = await tappedShop();
    const id = it.shop.run();
    it.jobs.write(id, lines(0, 3));
    await when("the stream", () => it.texts(id).length === 3);
    const row = it.fake.database.jobs.get(id) as Job;
    it.fake.database.jobs.delete(id);
    it.fake.holdStreams("output")();
    await when("losses", () => it.tapped.ends(id).length >= 3);
    it.fake.database.jobs.set(id, row);
    await when("the stream again", () => it.texts(id).length === 6);
    expect(new Set(it.tapped.ends(id).map(({ code }) => code))).toEqual(new Set([5]));
    it.jobs.write(id, lines(3, 4));
    await when("more", () => it.texts(id).length === 7);
    expect(it.texts(id)).toEqual([...numbers(0, 3), ...numbers(0, 4)]);
  });

  it("is opened again on the next connection to the same server", async () => {
    await using it = await tappedShop();
    const [running, over] = [it.shop.run(), it.shop.run()];
    it.jobs.write(running, lines(0, 3));
    it.jobs.complete(over);
    await when("the streams", () => it.texts(running).length === 3 && it.tapped.ends(over).length > 0);
    const before = it.tapped.openings(over).length;
    await it.fake.cut();
    it.jobs.write(running, lines(3, 5));
    await when("the end of the connection", () => it.tapped.all("closed").length === 1);
    expect(it.tapped.ends(running)).toMatchObject([{ code: 14 }]);
    await it.fake.mend();
    await when("the stream again", () => it.texts(running).length === 8);
    expect(it.texts(running)).toEqual([...numbers(0, 3), ...numbers(0, 5)]);
    it.jobs.complete(running);
    await when("its end", () => it.tapped.ends(running).length === 3);
    // All of this one had been emitted.
    expect(it.tapped.openings(over)).toHaveLength(before);
    expect(it.fake.peers.size).toBe(2);
  });

  it("of a job that another server took over goes on there", async () => {
    await using it = await tappedShop();
    const [running, over] = [it.shop.run(), it.shop.run()];
    it.jobs.complete(over);
    await when("the streams", () => it.tapped.streamed(running).length > 1 && it.tapped.ends(over).length > 0);
    const before = it.fake.calls("GetJobStream").made;
    await it.fake.restart();
    await when("its stream there", () => it.tapped.openings(running).length === 2);
    expect(
      it
        .listed()
        .at(-1)
        ?.map(({ id }) => id),
    ).toEqual([running]);
    expect(it.fake.calls("GetJobStream").made).toBe(before + 1);
    it.jobs.loseHeartbeat(running);
    await when("its end", () => it.tapped.ends(running).some(({ code }) => code === 0));
  });
});
