import { scenario } from "@tapedeck/query/testing/scenario";
import { expect, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { startSeededStack } from "../stack/seeded-stack.ts";

it("a state now is answered without query for as long as nothing is written, and then no more", async () => {
  await using on = await startSeededStack();
  const { stack, seed, write } = on;
  const alice = scenario();
  const session = alice.session("01A1");
  session.started();
  session.build("web", "started");
  await seed(alice.events);
  using client = skaffoldClient(stack.grpc);
  const overGrpc = () => client.unary("/proto.SkaffoldService/GetState");
  const overHttp = async (more = "") => stack.httpCall("GET", `/api/v1/state${more}`);
  const [bytes, first] = [(await overGrpc()).bytes, await overHttp()];
  expect([bytes.length > 0, first.status]).toEqual([true, 200]);

  await stack.parts.query[Symbol.asyncDispose]();
  expect((await overGrpc()).bytes).toEqual(bytes);
  expect((await overHttp()).body).toBe(first.body);
  expect((await overHttp(`?at=${JSON.parse(first.body).position}`)).status).toBe(503);
  const written = alice.events.length;
  session.build("web", "succeeded");
  await write(alice.events.slice(written));
  expect((await overHttp()).status).toBe(503);
});
