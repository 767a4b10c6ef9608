import type { NatsConnection } from "nats";
import { expect, it } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { connectThroughRestarts } from "../testing/nats-connection.ts";
import { until } from "../testing/until.ts";
import { checkAgain } from "./check-again.ts";

const often = 2;
const never = Number.POSITIVE_INFINITY;
const times = { aloneMs: never, inClusterMs: often } as const;

/** A connection to a server alone, and a count of checks. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startTestNats());
  const nats = stack.adopt(await connectThroughRestarts(server.url), (nc) => nc.close());
  const owned = stack.move();
  return { server, nats, checks: 0, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("a server alone is checked after the connection was lost, a cluster again and again", async () => {
  await using on = await harness();
  const cluster = { ofThree: 0 };
  const inCluster = new Proxy(on.nats, {
    get: (nats, key: keyof NatsConnection) =>
      key === "info" ? { ...nats.info, cluster: "three" } : nats[key]?.bind(nats),
  });
  using _alone = checkAgain(on.nats, async () => on.checks++, times);
  using _cluster = checkAgain(inCluster, async () => cluster.ofThree++, times);
  await until(() => cluster.ofThree > 20, { message: "many checks of the cluster" });
  expect(on.checks).toBe(0);
  await on.server.kill();
  await on.server.restart();
  await until(() => on.checks > 0, { message: "a check after the connection was lost" });
  const before = cluster.ofThree;
  await until(() => cluster.ofThree > before + 20, { message: "more checks of the cluster" });
  expect(on.checks).toBe(1);
});

it("a check that fails is repeated, until one succeeds", async () => {
  await using on = await harness();
  const check = async () => {
    if (++on.checks < 5) throw new Error("not now");
  };
  using checking = checkAgain(on.nats, check, times);
  checking.now();
  await until(() => on.checks === 5, { message: "a check that succeeds" });
  const other = { checks: 0 };
  using _other = checkAgain(on.nats, async () => other.checks++, { aloneMs: often, inClusterMs: never });
  await until(() => other.checks > 20, { message: "the time of many checks" });
  expect(on.checks).toBe(5);
});

it("a subject that can't be heard is checked as often as in a cluster", async () => {
  await using on = await harness();
  using checking = checkAgain(on.nats, async () => on.checks++, times);
  checking.isDeaf();
  await until(() => on.checks > 5, { message: "many checks" });
});
