import { status } from "@grpc/grpc-js";
import { connectTo, protocol } from "@tapedeck/fakes/vagrant/client";
import { commandResult, type Shop, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import {
  Component,
  Component_Type,
  GetRunnerRequest,
  Job_State,
  Ref_Runner,
  Runner,
  RunnerConfigRequest,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../rkt/tables.ts";
import { startVagrantStack, type VagrantStack } from "./stack.ts";

let on: VagrantStack;
let shop: Shop;
beforeAll(async () => {
  on = await startVagrantStack();
  shop = setUpShop(on.fake);
});
afterAll(() => on[Symbol.asyncDispose]());

/** Connects to the server as a command's runner does, and is registered there until it leaves. */
async function connectRunner(components: readonly Partial<Component>[]) {
  const id = on.fake.newId();
  const client = connectTo(on.fake);
  const { path, requestSerialize, responseDeserialize } = VagrantService.runnerConfig;
  const call = client.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, protocol("1,1"));
  call.on("error", () => {});
  const configured = new Promise((resolve) => call.once("data", resolve));
  const over = new Promise((resolve) => call.once("status", resolve));
  const runner = Runner.fromPartial({
    id,
    by_id_only: true,
    components: components.map((one) => Component.fromPartial(one)),
  });
  call.write(RunnerConfigRequest.fromPartial({ event: { $case: "open", value: { runner } } }));
  await configured;
  return {
    id,
    leave: async () => {
      call.end();
      await over;
      client[Symbol.dispose]();
    },
  };
}

/** Starts a command on a runner: Tapedeck discovers a runner only through a job that names it. */
async function startCommand(runner: string): Promise<string> {
  const target_runner = Ref_Runner.fromPartial({ target: { $case: "id", value: { id: runner } } });
  const job = shop.run({ target_runner });
  await on.waitForEvent("runner.added", runner);
  return job;
}

const request = (runner_id: string) => Buffer.from(GetRunnerRequest.encode({ runner_id }).finish());

async function askGateway(runner: string, head: Readonly<Record<string, string>> = {}) {
  const { code, message, bytes, position } = await on.client.ask("GetRunner", request(runner), head);
  return { answer: { code, details: message, bytes }, position };
}

async function askServer(runner: string) {
  using client = connectTo(on.fake);
  return await client.raw("GetRunner", request(runner));
}

/** Returns the answer of both, which must be the same. */
async function sameAnswer(runner: string) {
  const direct = await askServer(runner);
  expect((await askGateway(runner)).answer).toEqual(direct);
  return direct;
}

it("GetRunner answers as the server for runners that come and leave", async () => {
  const leaving = await connectRunner([]);
  // The server keeps a runner with components for ever.
  const staying = await connectRunner([{ type: Component_Type.COMMAND, name: "Command" }]);
  const unknown = { code: status.NOT_FOUND, details: "failed to locate runner (record not found)" };
  expect(await sameAnswer(on.fake.newId())).toMatchObject(unknown);

  const jobs = [await startCommand(leaving.id), await startCommand(staying.id)];
  await on.stack.drained();
  for (const { id } of [leaving, staying]) {
    const { code, bytes } = await sameAnswer(id);
    expect([code, Runner.decode(bytes).id]).toEqual([status.OK, id]);
  }
  const before = await askGateway(leaving.id);

  // Ends like a command: its job is over, then its runner leaves.
  for (const job of jobs) on.fake.jobs.complete(job, commandResult({ run_result: true }));
  await Promise.all([leaving.leave(), staying.leave()]);
  for (const job of jobs) await on.waitForState(job, Job_State.SUCCESS);
  await on.waitForEvent("runner.removed", leaving.id);
  await until(async () => (await askGateway(leaving.id)).answer.code !== status.OK, {
    message: "the tables to follow",
  });
  expect(await sameAnswer(leaving.id)).toMatchObject(unknown);
  expect(await sameAnswer(staying.id)).toMatchObject({ code: status.OK });

  // Past states still contain it, and so do the tables.
  const then = await askGateway(leaving.id, { "tapedeck-at": before.position });
  expect(then).toEqual(before);
  await on.stack.drained();
  const rows = await ask(on.stack.database, "select id, gone from tapedeck.vagrant_runners order by id");
  expect(rows).toEqual([
    { id: leaving.id, gone: true },
    { id: staying.id, gone: false },
  ]);
  const reported = (await on.eventsOf("resources")).filter(({ kind }) => kind.startsWith("runner."));
  expect(reported.map(({ kind, subject }) => [kind, subject])).toEqual([
    ["runner.added", leaving.id],
    ["runner.added", staying.id],
    ["runner.removed", leaving.id],
  ]);
});
