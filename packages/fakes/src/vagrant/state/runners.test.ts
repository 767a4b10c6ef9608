import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import {
  type RunnerJobStreamRequest as FromRunner,
  type RunnerJobStreamResponse as FromServer,
  Job_State,
  Runner,
  type RunnerConfigRequest,
  type RunnerConfigResponse,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { connectTo, line, protocol } from "../client.ts";
import { startFakeVagrant } from "../server.ts";
import { commandResult, setUpShop } from "../shop.ts";

const { runnerConfig, runnerJobStream, getRunner } = VagrantService;
const { QUEUED, WAITING, RUNNING, SUCCESS, ERROR } = Job_State;

function talk<Q, A>(call: ClientDuplexStream<Q, A>) {
  const reported: A[] = [];
  call.on("data", (message: A) => reported.push(message));
  call.on("error", () => {});
  const end = new Promise<{ code: number; details: string }>((resolve) => call.on("status", resolve));
  return {
    reported,
    end,
    send: (message: Q) => void call.write(message),
    close: () => call.end(),
    cancel: () => call.cancel(),
  };
}

async function shop() {
  const fake = await startFakeVagrant();
  const client = connectTo(fake);
  const ids = setUpShop(fake);
  const { client: raw } = client;

  function configure() {
    const { path, requestSerialize, responseDeserialize } = runnerConfig;
    return talk<RunnerConfigRequest, RunnerConfigResponse>(
      raw.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, protocol("1,1")),
    );
  }

  function serve(runner_id: string = ids.runner) {
    const { path, requestSerialize, responseDeserialize } = runnerJobStream;
    const stream = talk<FromRunner, FromServer>(
      raw.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, protocol("1,1")),
    );
    const send = (event: NonNullable<FromRunner["event"]>) => stream.send({ event });
    send({ $case: "request", value: { runner_id } });
    const cases = () => stream.reported.map(({ event }) => event?.$case);
    return { ...stream, send, cases };
  }

  return {
    ...ids,
    fake,
    client,
    configure,
    serve,
    stateOf: async (id: string) => (await client.job(id)).state,
    becomes: (id: string, state: Job_State) =>
      until(async () => (await client.job(id)).state === state, { message: `state ${state}` }),
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

describe("RunnerConfig", () => {
  it("registers a runner, answers once, and keeps the row when the runner is gone, also in the next process", async () => {
    await using it = await shop();
    const runner = Runner.fromPartial({ id: "R1", by_id_only: true, components: [{ type: 1, name: "Command" }] });
    const stream = it.configure();
    stream.send({ event: { $case: "open", value: { runner } } });
    await until(() => stream.reported.length === 1, { message: "the answer" });
    expect(stream.reported[0]?.config?.config_vars).toEqual([]);
    expect(await it.client.call(getRunner, { runner_id: "R1" })).toMatchObject(runner);
    stream.close();
    expect(await stream.end).toMatchObject({ code: status.CANCELLED, details: "context canceled" });
    expect(stream.reported).toHaveLength(1);
    await it.fake.restart();
    using again = connectTo(it.fake);
    expect(await again.call(getRunner, { runner_id: "R1" })).toMatchObject({ id: "R1" });
    await expect(again.call(getRunner, { runner_id: "R2" })).rejects.toThrow(/^5 /);
  });

  it("refuses what comes before open, and ends the process for an open without a runner", async () => {
    await using it = await shop();
    const wrong = it.configure();
    wrong.send({});
    expect(await wrong.end).toMatchObject({ code: status.FAILED_PRECONDITION });
    const deadly = it.configure();
    deadly.send({ event: { $case: "open", value: {} } });
    expect(await deadly.end).toMatchObject({ code: status.UNAVAILABLE });
    expect(it.fake.crashed).toMatch("RunnerConfig without a runner");
  });
});

describe("RunnerJobStream", () => {
  it("gives the oldest job that is the runner's, with its whole scope, and takes it to its end", async () => {
    await using it = await shop();
    const anybodys = it.queue({ target_runner: { target: { $case: "any", value: {} } } });
    const id = it.queue();
    const later = it.queue();
    const runner = it.serve();
    await until(() => runner.reported.length === 1, { message: "the assignment" });
    const job = { id, scope: { value: { name: "shop", basis: { name: "default" } } } };
    expect(runner.reported[0]?.event?.value).toMatchObject({ job });
    expect(await it.stateOf(id)).toBe(WAITING);
    runner.send({ $case: "ack", value: {} });
    runner.send({ $case: "heartbeat", value: {} });
    runner.send({ $case: "terminal", value: { events: [line("hello")], buffered: false } });
    await it.becomes(id, RUNNING);
    runner.send({ $case: "complete", value: { result: commandResult({ run_result: true }) } });
    expect(await runner.end).toMatchObject({ code: 0 });
    expect(await it.client.job(id)).toMatchObject({ state: SUCCESS, result: { run: { run_result: true } } });
    const replay = it.client.follow(id);
    await replay.end;
    expect(replay.texts()).toEqual(["hello"]);
    expect([await it.stateOf(anybodys), await it.stateOf(later)]).toEqual([QUEUED, QUEUED]);
  });

  it("waits for a job, and lets a runner refuse it", async () => {
    await using it = await shop();
    const runner = it.serve();
    await until(() => it.fake.calls("RunnerJobStream").inFlight === 1, { message: "the stream" });
    const id = it.queue();
    await it.becomes(id, WAITING);
    runner.send({ $case: "error", value: { error: { code: 9, message: "not mine", details: [] } } });
    await it.becomes(id, QUEUED);
    expect(await runner.end).toMatchObject({ code: 0 });
    it.fake.jobs.loseHeartbeat(id);
    expect(await it.stateOf(id)).toBe(ERROR);
  });

  it("takes the job back from a runner that says something else, closes, or breaks off", async () => {
    await using it = await shop();
    const id = it.queue();
    const ends = [
      ["says", status.FAILED_PRECONDITION],
      ["closes", status.UNKNOWN],
      ["breaks off", status.CANCELLED],
    ] as const;
    for (const [how, code] of ends) {
      const runner = it.serve();
      await it.becomes(id, WAITING);
      if (how === "says") runner.send({ $case: "heartbeat", value: {} });
      else if (how === "closes") runner.close();
      else runner.cancel();
      expect(await runner.end).toMatchObject({ code });
      await it.becomes(id, QUEUED);
    }
  });

  it("sends a cancel at first sight and at each change after it; a forced one ends it", async () => {
    await using it = await shop();
    const runner = it.serve();
    const id = it.queue();
    await it.becomes(id, WAITING);
    runner.send({ $case: "ack", value: {} });
    await it.becomes(id, RUNNING);
    it.fake.jobs.cancel(id);
    it.fake.jobs.loseHeartbeat(id);
    expect(await runner.end).toMatchObject({ code: 0 });
    expect(runner.cases()).toEqual(["assignment", "cancel", "cancel"]);
    expect(runner.reported.slice(1).map(({ event }) => event?.value)).toMatchObject([
      { force: false },
      { force: true },
    ]);
  });

  it("of a runner that leaves without a word lets the job run", async () => {
    await using it = await shop();
    const runner = it.serve();
    const id = it.queue();
    await it.becomes(id, WAITING);
    runner.send({ $case: "ack", value: {} });
    await it.becomes(id, RUNNING);
    runner.close();
    expect(await runner.end).toMatchObject({ code: 0 });
    expect(await it.stateOf(id)).toBe(RUNNING);
  });

  it("ends jobs with a runner's error, and the process with one that has no status", async () => {
    await using it = await shop();
    for (const error of [{ code: 2, message: "no basis", details: [] }, undefined]) {
      const runner = it.serve();
      const id = it.queue();
      await it.becomes(id, WAITING);
      runner.send({ $case: "ack", value: {} });
      await it.becomes(id, RUNNING);
      runner.send({ $case: "error", value: { error } });
      expect(await runner.end).toMatchObject({ code: error === undefined ? status.UNAVAILABLE : 0 });
      if (error !== undefined) expect(await it.client.job(id)).toMatchObject({ state: ERROR, error });
    }
    expect(it.fake.crashed).toMatch("RunnerJobStream");
  });

  it("is for registered runners, and begins with a request", async () => {
    await using it = await shop();
    expect(await it.serve("nobody").end).toMatchObject({ code: status.NOT_FOUND });
    const { path, requestSerialize, responseDeserialize } = runnerJobStream;
    const wrong = talk<FromRunner, FromServer>(
      it.client.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, protocol("1,1")),
    );
    wrong.send({ event: { $case: "ack", value: {} } });
    expect(await wrong.end).toMatchObject({ code: status.FAILED_PRECONDITION });
  });
});
