import { once } from "node:events";
import { createServer } from "node:net";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { line, textOf } from "@tapedeck/fakes/vagrant/client";
import { type FakeVagrantOptions, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { setUpShop, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  CancelJobRequest,
  type GetJobStreamRequest,
  type GetJobStreamResponse,
  GetVersionInfoResponse,
  Job,
  Job_State,
  ListJobsResponse,
  QueueJobRequest,
  QueueJobResponse,
  Target,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it, onTestFinished } from "vitest";
import { monotonicTimes } from "./monotonic-times.ts";
import { listen, when } from "./testing/tap-listen.ts";

const none = Buffer.alloc(0);

/** A free port, and a fake that is not there yet. */
async function awayFake(options: FakeVagrantOptions = {}) {
  const fake = await startFakeVagrant({ port: await ownPort(), ...options });
  await fake.cut();
  return fake;
}

async function serve(server: Server): Promise<string> {
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, on: number) => (error ? reject(error) : resolve(on));
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
  });
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

describe("a connection", () => {
  it("first emits what it is a connection to, and then what is there", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    const id = shop.run();
    await using tapped = listen(fake.address);
    await when("observations", () => tapped.resources().length > 0 && tapped.openings(id).length === 1);
    const [dialled, identified, described, first] = tapped.items.map(({ what }) => what);
    expect(dialled).toEqual({ $case: "dialled", value: { address: fake.address, channels: ["jobs", "resources"] } });
    expect(identified).toEqual({ $case: "identified", value: { identity: fake.address, version: "2.3.7" } });
    expect(described).toMatchObject({ $case: "described", value: { channel: "version" } });
    const state = described?.$case === "described" ? described.value.state : none;
    expect(GetVersionInfoResponse.decode(state).info?.version).toBe("2.3.7");
    expect(first).toMatchObject({ $case: "frame", value: { channel: "jobs" } });
    expect(tapped.observations("jobs")[0]).toEqual({ $case: "all", value: fake.call("_ListJobs", none) });
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(1);
  });

  it("is to the lifetime of the server that the caller knows", async () => {
    await using fake = await startFakeVagrant();
    await using tapped = listen(fake.address, { server: "01SERVER" });
    await when("a connection", () => tapped.all("identified").length > 0);
    expect(tapped.all("identified")[0]).toEqual({ identity: "01SERVER", version: "2.3.7" });
  });

  it("says with every call which API it speaks", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    shop.target({ name: "web1" });
    shop.run();
    await using tapped = listen(fake.address);
    await when("observations", () => tapped.resources().length > 0 && fake.streams() === 1);
    expect(new Set(fake.newestCalls.map(({ rpc }) => rpc)).size).toBeGreaterThanOrEqual(11);
    for (const { rpc, metadata } of fake.newestCalls) expect(metadata["client-api-protocol"], rpc).toBe("1,1");
  });

  it("waits for the server, and for the next one at its address", async () => {
    await using fake = await awayFake();
    await using tapped = listen(fake.address);
    await fake.mend();
    for (const count of [1, 2]) {
      await when(`look ${count}`, () => tapped.lists().length === count && tapped.resources().length === count);
      await fake.goAway();
      await when(`end ${count}`, () => tapped.all("closed").length === count);
      await fake.restart();
    }
    await when("connection 3", () => tapped.all("dialled").length === 3);
    for (const { reason, process_ended } of tapped.all("closed")) {
      expect(reason).toMatch(/^(the connection was lost|UNAVAILABLE: .*)$/);
      expect(process_ended).toBe(false);
    }
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(3);
    const cases = tapped.items.flatMap(({ what }) => (what?.$case === "frame" ? [] : [what?.$case]));
    const whole = ["dialled", "identified", "described", "closed"];
    expect(cases.slice(0, 8)).toEqual([...whole, ...whole]);
  });

  it("ends when a call is answered that the server is unavailable", async () => {
    let lies = 1;
    const unavailable = { error: { code: 14, details: "going" } };
    const lie: FakeVagrantOptions["lie"] = ({ rpc }) => (rpc === "ListBoxes" && lies-- > 0 ? unavailable : undefined);
    await using fake = await startFakeVagrant({ lie });
    await using tapped = listen(fake.address);
    await when("another connection", () => tapped.resources().length === 1);
    expect(tapped.all("closed")).toEqual([{ reason: "UNAVAILABLE: going", process_ended: false }]);
    expect(tapped.failures("resources")).toEqual([]);
  });

  it("takes what streams still give when the server says goodbye", async () => {
    const job = Job.fromPartial({ ...upJob({ project: "P", runner: "R" }), id: "J", state: Job_State.RUNNING });
    const server = new Server();
    let stream: ServerWritableStream<GetJobStreamRequest, GetJobStreamResponse> | undefined;
    const answer =
      <Q, A>(value: A) =>
      (_: ServerUnaryCall<Q, A>, reply: sendUnaryData<A>) =>
        reply(null, value);
    server.addService(VagrantService, {
      getVersionInfo: answer(GetVersionInfoResponse.create()),
      listJobs: answer(ListJobsResponse.create({ jobs: [job] })),
      getJobStream: (call: typeof stream) => {
        stream = call;
        call?.write({ event: { $case: "open", value: {} } });
      },
    });
    const address = await serve(server);
    await using tapped = listen(address);
    await when("the stream", () => tapped.streamed("J").length === 1);
    const closed = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    const control = () => tapped.control({ call: "C", method: VagrantService.listBoxes.path, request: none });
    await until(async () => (await control()).code === 14, { message: "the goodbye" });
    stream?.write({ event: { $case: "terminal", value: { events: [line("last words")], buffered: false } } });
    stream?.end();
    await closed;
    await when("the end", () => tapped.all("closed").length === 1);
    expect(tapped.terminals("J").flatMap(({ events }) => events.map(textOf))).toEqual(["last words"]);
    expect(tapped.ends("J")).toMatchObject([{ code: 0 }]);
    expect(tapped.items.at(-1)?.what?.$case).toBe("closed");
  });

  it("is refused, once, by what is not Vagrant", async () => {
    const server = new Server();
    let calls = 0;
    const { getVersionInfo } = VagrantService;
    server.addService(
      { getVersionInfo },
      {
        getVersionInfo: (_: unknown, reply: sendUnaryData<GetVersionInfoResponse>) => {
          calls++;
          reply({ code: status.UNIMPLEMENTED, details: "unknown service" });
        },
      },
    );
    await using tapped = listen(await serve(server));
    await when("another attempt", () => calls === 2);
    expect(tapped.all("closed")).toHaveLength(1);
    expect(tapped.all("closed")[0]?.reason).toMatch(/^no server of Vagrant: UNIMPLEMENTED/);
    expect(tapped.all("identified")).toEqual([]);
  });

  it("is not taken for one where something listens and says nothing", async () => {
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const address = silent.address();
    const port = typeof address === "object" ? address?.port : undefined;
    await using tapped = listen(`127.0.0.1:${port}`, { timeout: "50" });
    await once(silent, "connection");
    await once(silent, "connection");
    expect(tapped.items).toEqual([]);
  });

  it("is left without anything open", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    const ids = Array.from({ length: 5 }, () => shop.run());
    const release = fake.hold("ListBoxes");
    const tapped = listen(fake.address);
    await when("the streams", () => ids.every((id) => tapped.streamed(id).length > 0));
    tapped.leave();
    await tapped.done;
    expect(tapped.all("closed")).toEqual([{ reason: "the tap has disconnected", process_ended: false }]);
    expect(tapped.items.at(-1)?.what?.$case).toBe("closed");
    for (const id of ids) expect(tapped.ends(id)).toHaveLength(1);
    await when("the server to notice", () => fake.streams() === 0);
    release();
    const made = fake.newestCalls.length;
    await using other = listen(fake.address);
    await when("another tap", () => other.resources().length > 0);
    expect(new Set(fake.newestCalls.slice(made).map(({ peer }) => peer)).size).toBe(1);
    expect(fake.peers.size).toBe(2);
  });
});

describe("moments", () => {
  it("rise from item to item", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    const id = shop.run();
    await using tapped = listen(fake.address);
    await when("observations", () => tapped.resources().length > 0 && fake.streams() === 1);
    for (let n = 0; n < 200; n++) fake.jobs.write(id, [line(`${n}`)]);
    await when("all lines", () => tapped.terminals(id).flatMap(({ events }) => events).length === 200);
    const timestamps = tapped.items.flatMap(({ at }) => at ?? []);
    expect(timestamps).toHaveLength(tapped.items.length);
    for (const [index, at] of timestamps.slice(1).entries()) {
      expect(compareTimestamps(timestamps[index] ?? at, at), `item ${index}`).toBeLessThan(0);
    }
  });

  it("rise where the clock stands still, or goes back", () => {
    const reported = [
      { seconds: 5n, nanos: 999_999_999 },
      { seconds: 5n, nanos: 999_999_999 },
      { seconds: 5n, nanos: 0 },
      { seconds: 7n, nanos: 1_000 },
    ];
    const now = monotonicTimes(
      () => reported.shift() ?? { seconds: 0n, nanos: 0 },
      () => 0,
    );
    expect([now(), now(), now(), now(), now()]).toEqual([
      { seconds: 5n, nanos: 999_999_999 },
      { seconds: 6n, nanos: 0 },
      { seconds: 6n, nanos: 1 },
      { seconds: 7n, nanos: 1_000 },
      { seconds: 7n, nanos: 1_001 },
    ]);
  });

  it("go on at their pace where the clock is set back by a day", () => {
    const wall = [86_400n, 1n, 2n, 86_403n];
    let steadyMs = 5_000;
    const now = monotonicTimes(
      () => ({ seconds: wall.shift() ?? 0n, nanos: 0 }),
      () => (steadyMs += 1_000),
    );
    expect([now(), now(), now(), now()].map(({ seconds }) => seconds)).toEqual([86_400n, 86_401n, 86_402n, 86_403n]);
  });
});

describe("a control call", () => {
  it("is made on the connection, and its effect is polled at once", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.resources().length > 0);
    const job = upJob(shop);
    const queue = QueueJobRequest.encode({ job, expires_in: "" }).finish();
    const queued = await tapped.control({
      call: "C1",
      method: VagrantService.queueJob.path,
      request: Buffer.from(queue),
    });
    expect(queued).toMatchObject({ call: "C1", code: 0, message: "" });
    const id = QueueJobResponse.decode(queued.response).job_id;
    await when("its stream", () => tapped.streamed(id).length > 0);
    const before = tapped.resources().length;
    const target = Target.fromPartial({ name: "web1", project: { resource_id: shop.project } });
    const request = VagrantService.upsertTarget.requestSerialize({ target });
    const { path } = VagrantService.upsertTarget;
    expect(await tapped.control({ call: "C2", method: path, request })).toMatchObject({ call: "C2", code: 0 });
    await when("the target", () =>
      tapped
        .resources()
        .slice(before)
        .some(({ kinds }) => kinds.some(({ kind, entries }) => kind === "target" && entries.length === 1)),
    );
    const control = fake.newestCalls.findLast(({ rpc }) => rpc === "UpsertTarget");
    expect(control?.metadata["client-api-protocol"]).toBe("1,1");
    expect(fake.peers.size).toBe(1);
  });

  it("is answered with what the server says to it", async () => {
    await using fake = await startFakeVagrant();
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.lists().length > 0);
    const request = Buffer.from(CancelJobRequest.encode({ job_id: "nobody" }).finish());
    const answer = await tapped.control({ call: "C", method: VagrantService.cancelJob.path, request });
    expect(answer).toEqual({ call: "C", code: 5, message: "job not found", response: none });
  });

  it("has no answer without a connection, and none of one that ends before it comes", async () => {
    await using fake = await awayFake();
    await using tapped = listen(fake.address);
    const call = { call: "C", method: VagrantService.listBoxes.path, request: none };
    expect(await tapped.control(call)).toEqual({
      call: "C",
      code: 14,
      message: "no connection to Vagrant",
      response: none,
    });
    await fake.mend();
    await when("a look", () => tapped.resources().length > 0);
    fake.hold("ListBoxes");
    const answer = tapped.control(call);
    await when("the call", () => fake.calls("ListBoxes").inFlight > 0);
    await fake.goAway();
    expect(await answer).toMatchObject({ call: "C", code: 14 });
  });
});
