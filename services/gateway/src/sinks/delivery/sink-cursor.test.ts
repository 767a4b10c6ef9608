import { offsetOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { SinkCursor } from "./sink-cursor.ts";

/** A cursor in a store that keeps what is written. `answer`: the revision of a write, by default the next one. */
function harness(times: { readonly cursorMs: number; readonly passedMs: number }) {
  const written: [position: string, after: number | undefined][] = [];
  const store = {
    answer: async (after: number): Promise<number | undefined> => after + 1,
    put: async (_: unknown, value: object, { revision = 0 }: { readonly revision?: number | undefined } = {}) => {
      written.push([(value as { position: string }).position, revision]);
      return store.answer(revision);
    },
  };
  const key = { workspace: "default", sink: "hook", type: "cursor" } as const;
  const place = { revision: 7, generation: "g", offset: offsetOf(0), written: String };
  return { store, written, cursor: new SinkCursor({ store, key, ...place, times }) };
}

const at = (sequence: number) => String(offsetOf(sequence));

it("is written once for what comes in a while, and the rest when it is disposed of", async () => {
  const { cursor, written } = harness({ cursorMs: 3_600_000, passedMs: 3_600_000 });
  cursor.delivered(offsetOf(1));
  await until(() => written.length === 1, { message: "the first write" });
  for (let sequence = 2; sequence <= 9; sequence++) cursor.delivered(offsetOf(sequence));
  cursor.passed(offsetOf(10));
  cursor.delivered(offsetOf(3));
  expect(cursor.offset).toBe(offsetOf(10));
  await cursor[Symbol.asyncDispose]();
  expect(written).toEqual([
    [at(1), 7],
    [at(10), 8],
  ]);
});

it("is written soon after a delivery, although it has passed something before", async () => {
  const { cursor, written } = harness({ cursorMs: 1, passedMs: 3_600_000 });
  cursor.delivered(offsetOf(1));
  await until(() => written.length === 1, { message: "the first write" });
  cursor.passed(offsetOf(2));
  cursor.delivered(offsetOf(3));
  await until(() => written.length === 2, { message: "the second write" });
  expect(written[1]).toEqual([at(3), 8]);
  await cursor[Symbol.asyncDispose]();
});

it("is lost when somebody else has written it, and is written no more", async () => {
  const { cursor, store, written } = harness({ cursorMs: 1, passedMs: 1 });
  store.answer = async () => undefined;
  cursor.delivered(offsetOf(1));
  await until(() => cursor.lost.aborted, { message: "it to be noticed" });
  cursor.delivered(offsetOf(2));
  await cursor[Symbol.asyncDispose]();
  expect(written).toHaveLength(1);
});

it("is written again while the store can't be reached", async () => {
  const { cursor, store, written } = harness({ cursorMs: 1, passedMs: 1 });
  store.answer = async (after) => {
    if (written.length < 3) throw new Error("away");
    return after + 1;
  };
  cursor.delivered(offsetOf(1));
  await until(() => written.length >= 3, { message: "a write that succeeds" });
  await cursor[Symbol.asyncDispose]();
  expect(written).toEqual(Array(3).fill([at(1), 7]));
});

it("has what the format remembers at its offset, also when that changes at the same offset", async () => {
  const memories: unknown[] = [];
  let memory = "fails";
  const cursor = new SinkCursor({
    store: {
      put: async (_: unknown, value: object, { revision = 0 } = {}) => {
        memories.push([(value as { position: string }).position, (value as { memory?: string }).memory]);
        return revision + 1;
      },
    },
    key: { workspace: "default", sink: "team", type: "cursor" },
    revision: 7,
    generation: "g",
    offset: offsetOf(0),
    written: String,
    memory: (offset) => `${memory} at ${offset}`,
    times: { cursorMs: 1, passedMs: 1 },
  });
  cursor.delivered(offsetOf(1));
  await until(() => memories.length === 1, { message: "the first write" });
  memory = "is good";
  cursor.remembered();
  await until(() => memories.length === 2, { message: "the second write" });
  await cursor[Symbol.asyncDispose]();
  expect(memories).toEqual([
    [at(1), `fails at ${at(1)}`],
    [at(1), `is good at ${at(1)}`],
  ]);
});
