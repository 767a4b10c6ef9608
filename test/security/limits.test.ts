import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { infoOf } from "../stack/error-info.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

const cleanup = new AsyncDisposableStack();
let on: SeededStack;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack({ TAPEDECK_LIMITS_QUERY: "1s" }));
  const script = scenario(sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" }));
  const session = script.session("01A1");
  session.started();
  session.configured();
  await on.seed(script.events);
});
afterAll(() => cleanup.disposeAsync());

const get = async (path: string) => {
  const { status, body, headers } = await on.stack.httpCall("GET", path);
  return { status, headers, body: JSON.parse(body) as { error?: object; details?: object[] } };
};

it("a query over the time limit is limit_exceeded on every transport, without delay", async () => {
  const database = cleanup.adopt(new Client(on.stack.database), (client) => client.end());
  await database.connect();
  await database.query("begin; lock table tapedeck.sources in access exclusive mode");

  const tooLong = "this takes too long: narrow the request, for example to a shorter time";
  const error = { code: "limit_exceeded", message: tooLong };
  for (const path of ["/api/v1/sources", "/api/v1/state"]) {
    const { status, body, headers } = await get(path);
    expect([path, status, body]).toEqual([path, 429, { error }]);
    // A retry would take as long.
    expect(headers["retry-after"]).toBeUndefined();
  }
  expect(await get("/v1/state")).toMatchObject({ status: 429, body: { code: 8, details: [{ reason: error.code }] } });
  const answer = await cleanup.use(skaffoldClient(on.stack.grpc)).unary("/proto.SkaffoldService/GetState");
  expect([answer.code, infoOf(answer)?.reason]).toEqual([8, error.code]);

  await database.query("rollback");
  await until(async () => (await get("/api/v1/sources")).status === 200, { message: "answers in time" });
});
