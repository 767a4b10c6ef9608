import { jetstreamManager } from "@nats-io/jetstream";
import type { MovedMessage } from "@tapedeck/proto/tapedeck/v1/maintain";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { encodeBatch } from "@tapedeck/shared/log/batch";
import { streamName, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import type { NatsConnection } from "nats";
import { beforeEach, expect, it } from "vitest";
import type { OpenStore } from "../../store.ts";
import { openedStore } from "../../testing/opened-store.ts";
import { arriveCall } from "./arrive.ts";
import { lastCopied } from "./held.ts";

const { signal } = new AbortController();
const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
let store: OpenStore;
beforeEach(async () => {
  const opened = await openedStore();
  store = opened.store;
  const { marks } = opened;
  await marks.set("acme", { state: "arriving", other: "home" }, await marks.of("acme"));
});

const message = (sequence: number): MovedMessage => ({
  sequence: BigInt(sequence),
  recorded_at_ms: 1_800_000_000_000n,
  writer: "w1",
  ttl_seconds: 0n,
  subject: `${workspaceFilter("acme").slice(0, -1)}alice.shop.skaffold.v1.log`,
  cursor: JSON.stringify({ session: "s", ordinals: { v1: sequence } }),
  body: Buffer.from(encodeBatch([encodeEvent(testEvent(alice, sequence))])),
});

/** The messages with these sequences in the old log. */
const arrive = (after: number, sequences: readonly number[], nats: NatsConnection = store.nats) => {
  const request = { workspace: "acme", epoch: "old1", after_sequence: BigInt(after), messages: sequences.map(message) };
  return Array.fromAsync(arriveCall(request, { ...store, nats }, signal));
};

const copied = async () => (await lastCopied(store.nats, "acme"))?.moved?.sequence ?? 0;

it("messages arrive in order, and the log says how far", async () => {
  expect(await arrive(0, [3, 5])).toHaveLength(1);
  expect(await copied()).toBe(5);
  await expect(arrive(3, [5])).rejects.toThrow("another move");
  expect(await arrive(5, [9])).toHaveLength(1);
  expect(await copied()).toBe(9);
});

it("a log that is full takes nothing, and says so", async () => {
  await arrive(0, [3]);
  const jsm = await jetstreamManager(store.nats);
  const { state } = await jsm.streams.info(streamName);
  await jsm.streams.update(streamName, { max_msgs: state.messages, discard: "new" });
  await expect(arrive(3, [4])).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringMatching(/accepts no messages: maximum messages exceeded/),
  });
  expect(await copied()).toBe(3);
  // What was refused is not taken for copied once there is room again.
  await jsm.streams.update(streamName, { max_msgs: -1 });
  await arrive(3, [4, 6]);
  expect((await jsm.streams.info(streamName)).state.messages).toBe(state.messages + 2);
});

it("a message that another mover was faster with is not added twice", async () => {
  await arrive(0, [3]);
  // The second mover adds its message between the question and the publish of the first.
  let isFirst = true;
  const slow = new Proxy(store.nats, {
    get(target, name) {
      if (name !== "request") {
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      }
      return async (...given: Parameters<NatsConnection["request"]>) => {
        if (isFirst && given[0].startsWith("tapedeck.v2.")) {
          isFirst = false;
          await arrive(3, [4]);
        }
        return target.request(...given);
      };
    },
  });
  await arrive(3, [4, 7], slow);
  expect(isFirst).toBe(false);
  expect(await copied()).toBe(7);
  const jsm = await jetstreamManager(store.nats);
  const { state } = await jsm.streams.info(streamName, { subjects_filter: workspaceFilter("acme") });
  expect(Object.values(state.subjects ?? {})).toEqual([3]);
});
