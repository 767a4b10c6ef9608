import { LogReplacedError } from "@tapedeck/shared/log/log";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { expect, it } from "vitest";
import type { LogLink } from "../log-link.ts";
import type { Shard } from "./shard.ts";
import { failureOf } from "./shards.ts";

const shardThat = (name: string, failed: Promise<never>): Shard => ({ name, link: { failed } as LogLink }) as Shard;
const goesOn = new Promise<never>(() => {});
const ended = (...shards: [Shard, ...Shard[]]) =>
  Promise.race([failureOf(shards, silentLogger), new Promise((resolve) => setImmediate(resolve, "goes on"))]);

it("a shard that refuses the gateway ends it only if it is home", async () => {
  const refused = Promise.reject(new Error("the nats-server refuses nats.user and nats.password"));
  expect(await ended(shardThat("home", goesOn), shardThat("two", refused))).toBe("goes on");
  await expect(ended(shardThat("home", refused), shardThat("two", goesOn))).rejects.toThrow("refuses");
});

it("a gateway ends when the log of any shard is another one, and then serves that", async () => {
  const replaced = Promise.reject(new Error("another log", { cause: new LogReplacedError("E") }));
  await expect(ended(shardThat("home", goesOn), shardThat("two", replaced))).rejects.toThrow("shard two: another log");
});
