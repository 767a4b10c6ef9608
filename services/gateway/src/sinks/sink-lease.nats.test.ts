import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import { defaultSinkTimes } from "./delivery/times.ts";
import { SinkLease } from "./sink-lease.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

async function harness() {
  const nats = stack.use(await startTestNats());
  const holding = new Set<string>();
  const member = async (gateway: string) => {
    const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
    const store = new SinkStore(connection);
    let isAway = false;
    const lease = stack.use(
      new SinkLease({
        store: () => {
          if (isAway) throw new Error("away");
          return store;
        },
        gateway,
        times: defaultSinkTimes,
        failed: () => {},
        hold: async (lost) => {
          holding.add(gateway);
          await new Promise((resolve) => lost.addEventListener("abort", resolve, { once: true }));
          holding.delete(gateway);
        },
      }),
    );
    return {
      lease,
      store,
      cutOff: () => {
        isAway = true;
      },
    };
  };
  return { member, holding };
}

it("is held by one gateway, and by another one at most ten seconds after that is cut off", async () => {
  const { member, holding } = await harness();
  const one = await member("one");
  await until(() => holding.has("one"), { message: "the first gateway to hold it" });
  await member("two");
  const before = (await one.store.owner()).revision;
  await until(async () => (await one.store.owner()).revision > before, { message: "a renewal" });
  expect([...holding]).toEqual(["one"]);
  one.cutOff();
  const began = performance.now();
  await until(() => holding.has("two"), { message: "the second gateway to hold it" });
  expect(performance.now() - began).toBeLessThan(10_000);
  // The first one has stopped before the second one began.
  expect([...holding]).toEqual(["two"]);
});

it("is free for others as soon as its holder stops", async () => {
  const { member, holding } = await harness();
  const one = await member("one");
  await until(() => holding.has("one"), { message: "the first gateway to hold it" });
  const two = await member("two");
  await one.lease[Symbol.asyncDispose]();
  expect(await one.store.owner()).toMatchObject({ owner: undefined });
  two.lease.freed();
  await until(() => holding.has("two"), { message: "the second gateway to hold it" });
});
