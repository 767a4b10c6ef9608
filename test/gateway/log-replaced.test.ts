import { jetstreamManager } from "@nats-io/jetstream";
import { scenario } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { infoOf } from "../stack/error-info.ts";
import { startSeededStack } from "../stack/seeded-stack.ts";

it("when another log takes the place of one, every reader gets an error, and the gateway serves the other", async () => {
  await using on = await startSeededStack();
  const alice = scenario();
  const session = alice.session("01A1");
  session.started();
  session.configured();
  await on.seed(alice.events);
  const { stack } = on;
  const metric = async () => {
    const { body } = await stack.httpCall("GET", "/metrics");
    return Number(/^tapedeck_gateway_subscriptions\S* (\d+)/m.exec(body)?.[1]);
  };

  using client = skaffoldClient(stack.grpc);
  const overGrpc = client.all("/proto.SkaffoldService/Events").catch((error) => error);
  const paths = {
    "/v1/events": "application/json",
    "/api/v1/stream": "text/event-stream",
    "/api/v1/stream?after=start": "application/x-ndjson",
  };
  const overHttp = Object.entries(paths).map(([path, accept]) => stack.httpCall("GET", path, { accept }));
  await until(async () => (await metric()) === 4, { message: "all to follow" });

  const connection = await connect({ servers: stack.parts.nats.url });
  const { streams } = await jetstreamManager(connection);
  // Where it is known that there was a log, none is begun.
  for (const name of ["TAPEDECK_ENDS", streamOf("acme")]) await streams.delete(name);
  const replacement = await openLog(connection, { workspace: "acme", syncKnown: true, timeoutMs: 20_000 });
  const { epoch } = replacement;
  await replacement[Symbol.asyncDispose]();
  await connection.close();

  const refusal = await overGrpc;
  expect(refusal).toMatchObject({ code: 14, details: "the log was replaced by another one: connect again" });
  expect(infoOf({ code: 14, message: "", bytes: Buffer.alloc(0), metadata: refusal.metadata })).toMatchObject({
    reason: "not_ready",
  });
  const [skaffolds, sse, ndjson] = (await Promise.all(overHttp)).map(({ body }) => body.trim().split("\n"));
  expect(JSON.parse(skaffolds?.at(-1) ?? "")).toMatchObject({
    error: { code: 14, details: [{ reason: "not_ready" }] },
  });
  expect(sse?.at(-2)).toBe("event: error");
  const error = { type: "error", error: { code: "not_ready", message: expect.any(String) } };
  expect(JSON.parse(sse?.at(-1)?.replace("data: ", "") ?? "")).toEqual(error);
  expect(JSON.parse(ndjson?.at(-1) ?? "")).toEqual(error);

  const { status, body } = await stack.httpCall("GET", "/api/v1/events?after=start");
  expect([status, JSON.parse(body)]).toMatchObject([200, { items: [], position: expect.stringMatching(`-${epoch}$`) }]);
  const ready = await stack.httpCall("GET", "/readyz");
  expect(JSON.parse(ready.body).checks.log).toBe("ok");
  const metrics = await stack.httpCall("GET", "/metrics");
  expect(metrics.body).toMatch(/tapedeck_gateway_errors_total\{api="api",code="not_ready"[^}]*\} 2/);
});
