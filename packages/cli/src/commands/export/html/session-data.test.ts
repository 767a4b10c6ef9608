import { type Session, type State, TapedeckError, type TapedeckEvent } from "@tapedeck/client";
import { expect, it } from "vitest";
import { defaultBounds, readSessionData } from "./session-data.ts";

async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item, void> {
  yield* items;
}

it("asks again where there were too many questions, and keeps a state once that stays as it is", async () => {
  const events = ["build.started", "log.written", "build.succeeded", "port.forwarded"].map(
    (kind, index) => ({ kind, position: `p${index}` }) as TapedeckEvent,
  );
  const states: Readonly<Record<string, object>> = { p0: { a: 1 }, p2: { a: 2 }, p3: { a: 2 } };
  let refusals = 1;
  const client = {
    sessions: () => each([{ session: "01A", source: "acme/alice/shop/skaffold" } as Session]),
    events: () => each(events),
    operations: () => each([]),
    async state(_: string, { at = "" }: { readonly at?: string | Date } = {}) {
      if (at === "p2" && refusals-- > 0) throw new TapedeckError({ code: "limit_exceeded", message: "too many" });
      return { state: states[String(at)] } as State;
    },
    compare: () => expect.fail("no loop failed"),
  } as unknown as Parameters<typeof readSessionData>[0];
  const counts: number[] = [];
  const data = await readSessionData(client, { session: "01A", position: "p9" }, defaultBounds, (count) =>
    counts.push(count),
  );
  expect(data.statePoints.map(({ position, state }) => [position, data.states[state]])).toEqual([
    ["p0", { a: 1 }],
    ["p2", { a: 2 }],
    ["p3", { a: 2 }],
  ]);
  expect([data.states.length, data.olderEvents, counts]).toEqual([2, 0, [1, 2, 3, 4]]);
  const other = () => Promise.reject(new TapedeckError({ code: "forbidden", message: "no" }));
  await expect(
    readSessionData({ ...client, state: other }, { session: "01A", position: "p9" }, defaultBounds, () => {}),
  ).rejects.toThrow("no");
});

it("leaves out the oldest states where earlier ones were larger than the last", async () => {
  const events = Array.from({ length: 40 }, (_, index) => ({ kind: "build.started", position: `p${index + 10}` }));
  const client = {
    sessions: () => each([{ session: "01A", source: "acme/alice/shop/skaffold" } as Session]),
    events: () => each(events as TapedeckEvent[]),
    operations: () => each([]),
    state: async (_: string, { at = "" }: { readonly at?: string | Date } = {}) => ({
      state: at === "p49" ? {} : { at, pods: "x".repeat(1_000) },
    }),
    compare: () => expect.fail("no loop failed"),
  } as unknown as Parameters<typeof readSessionData>[0];
  const bounds = { ...defaultBounds, stateCharacters: 5_000 };
  const { statePoints } = await readSessionData(client, { session: "01A", position: "p9" }, bounds, () => {});
  // Four questions are under way when the bound is reached.
  expect([statePoints.length > 4, statePoints.length < 12]).toEqual([true, true]);
  expect(statePoints.at(-1)?.position).toBe("p49");
  expect(statePoints[0]?.position).not.toBe("p10");
});

it("compares failed loops as of the position of all else, and counts the operations that it leaves out", async () => {
  const operations = [5, 4, 3, 2, 1].map((loop) => ({
    kind: "loop",
    outcome: "failed",
    session: "01A",
    runner: 1,
    loop,
  }));
  const compared: unknown[] = [];
  const client = {
    sessions: () => each([{ session: "01A", source: "acme/alice/shop/skaffold" } as Session]),
    events: () => each([]),
    operations: () => each(operations),
    compare: async (...request: unknown[]) => void compared.push(request),
  } as unknown as Parameters<typeof readSessionData>[0];
  const bounds = { ...defaultBounds, operations: 2 };
  const data = await readSessionData(client, { session: "01A", position: "p9" }, bounds, () => {});
  expect([data.operations.length, data.olderOperations]).toEqual([2, 3]);
  expect(compared).toEqual([
    ["01A.1.5", { at: "p9" }],
    ["01A.1.4", { at: "p9" }],
  ]);
});
