import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import { line, textOf } from "@tapedeck/fakes/vagrant/client";
import { commandResult, type Shop, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import {
  GetJobStreamResponse,
  Runner,
  RunnerConfigRequest,
  RunnerJobStreamRequest,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ServerUnderTest, serverUnderTest } from "./server-tests.ts";
import { startVagrantStack, type VagrantStack } from "./stack.ts";

let on: VagrantStack;
let shop: Shop;
let server: ServerUnderTest;
beforeAll(async () => {
  on = await startVagrantStack();
  shop = setUpShop(on.fake);
  server = serverUnderTest(on.stack.grpc);
});
afterAll(async () => {
  server?.[Symbol.dispose]();
  await on[Symbol.asyncDispose]();
});

/** A job of a runner of its own. */
function queuedJob(): { readonly runner: string; readonly job: string } {
  const runner = on.fake.newId();
  on.fake.database.runners.set(runner, Runner.fromPartial({ id: runner, by_id_only: true, components: [{ type: 1 }] }));
  return { runner, job: shop.queue({ target_runner: { target: { $case: "id", value: { id: runner } } } }) };
}

/** Follows a stream until its end. */
function followed<Sent, Received>(call: ClientDuplexStream<Sent, Received>) {
  call.on("data", () => {});
  call.on("error", () => {});
  const end = new Promise<{ readonly code: number; readonly details: string }>((resolve) => call.on("status", resolve));
  return { call, end };
}

const config = () => followed(server.client.runnerConfig(server.metadata()));
const jobs = () => followed(server.client.runnerJobStream(server.metadata()));

it("a message that would end the server is refused and does not reach it", async () => {
  const opened = config();
  opened.call.write(RunnerConfigRequest.fromPartial({ event: { $case: "open", value: {} } }));
  expect(await opened.end).toMatchObject({ code: status.FAILED_PRECONDITION, details: /without a runner/ });

  const { runner } = queuedJob();
  const running = jobs();
  running.call.write({ event: { $case: "request", value: { runner_id: runner } } });
  await new Promise((resolve) => running.call.once("data", resolve));
  running.call.write({ event: { $case: "ack", value: {} } });
  running.call.write({ event: { $case: "error", value: { error: undefined } } });
  expect(await running.end).toMatchObject({ code: status.FAILED_PRECONDITION, details: /no status/ });
  expect(on.fake.crashed).toBeUndefined();
});

it("more output than fits at once comes whole and in order", async () => {
  const { runner, job } = queuedJob();
  const running = jobs();
  running.call.write({ event: { $case: "request", value: { runner_id: runner } } });
  await new Promise((resolve) => running.call.once("data", resolve));
  running.call.write({ event: { $case: "ack", value: {} } });
  const texts = Array.from({ length: 40 }, (_, index) => `${index} `.padEnd(100_000, "x"));
  for (const text of texts) {
    running.call.write(
      RunnerJobStreamRequest.fromPartial({ event: { $case: "terminal", value: { events: [line(text)] } } }),
    );
  }
  const result = commandResult({ run_result: true });
  running.call.write({ event: { $case: "complete", value: { result } } });
  expect(await running.end).toMatchObject({ code: status.OK });
  const listening = on.client.job(job);
  expect(await listening.end).toMatchObject({ code: status.OK });
  const output = listening.messages.flatMap((bytes) => {
    const { event } = GetJobStreamResponse.decode(bytes);
    return event?.$case === "terminal" ? event.value.events.map(textOf) : [];
  });
  expect(output.map((text) => text.length)).toEqual(texts.map((text) => text.length));
  expect(output).toEqual(texts);
});

it("it is in the audit log, with the method and the source", async () => {
  const opened = jobs();
  opened.call.write({ event: { $case: "terminal", value: { events: [], buffered: false } } });
  expect(await opened.end).toMatchObject({ code: status.FAILED_PRECONDITION });
  const entries = async () => (await fetch(`http://${on.stack.http}/api/v1/audit`)).text();
  const isThere = async () => /control\.called[^}]*Vagrant.RunnerJobStream/.test(await entries());
  await until(isThere, { message: "the entry" });
});

it("a client that leaves is gone at the server, too", async () => {
  const opened = config();
  const runner = { id: on.fake.newId(), by_id_only: true };
  opened.call.write(RunnerConfigRequest.fromPartial({ event: { $case: "open", value: { runner } } }));
  await new Promise((resolve) => opened.call.once("data", resolve));
  expect(on.fake.database.runners.has(runner.id)).toBe(true);
  opened.call.cancel();
  await on.waitForEvent("runner.removed", runner.id);
  expect(on.fake.database.runners.has(runner.id)).toBe(false);
});

it("the stream ends with UNAVAILABLE when the server goes away, and none can be opened then", async () => {
  const opened = config();
  const runner = { id: on.fake.newId(), by_id_only: true };
  opened.call.write(RunnerConfigRequest.fromPartial({ event: { $case: "open", value: { runner } } }));
  await new Promise((resolve) => opened.call.once("data", resolve));
  await on.fake.goAway();
  expect(await opened.end).toMatchObject({ code: status.UNAVAILABLE });
  expect(await config().end).toMatchObject({ code: status.UNAVAILABLE });
});
