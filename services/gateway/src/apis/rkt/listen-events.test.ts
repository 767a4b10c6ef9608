import { EventFilter, ListenEventsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallContext } from "../../call-context.ts";
import { type Fields, type Harness, reader, rktHarness, timestamp } from "./testing/rkt-harness.ts";

let on: Harness;
beforeEach(async () => {
  on = await rktHarness();
});
afterEach(() => on[Symbol.asyncDispose]());

const session = "01A";

/** A fact that an observation of the pods showed at second `at`. */
const pod = (id: string, at: number, more: Partial<Fields> = {}): Fields =>
  ({
    kind: "pod.started",
    channel: "pods",
    session,
    occurred_at: timestamp(at),
    observed_at: timestamp(at, 500_000_000),
    detail: { $case: "pod", value: { pod: id, name: id } },
    ...more,
  }) as Fields;

const image = (id: string, at: number): Fields => ({
  ...pod(id, at),
  kind: "image.imported",
  channel: "images",
  detail: { $case: "image", value: { image: id, name: `sim.example/${id}` } },
});

/** Ids by message. */
async function listen(filter: Partial<EventFilter> = {}, context: Partial<CallContext> = {}) {
  const request = { filter: EventFilter.fromPartial(filter) };
  const { head, messages } = await on.api.listenEvents(request, on.context(context));
  const stream = reader(messages, (bytes) => ListenEventsResponse.decode(bytes).events.map(({ id }) => id));
  return { head, ...stream };
}

const now = () => Math.floor(Date.now() / 1_000);

describe("the stream of events", () => {
  it("is the current session from its start, what one observation showed in one message, then live", async () => {
    on.session("01OLD");
    await on.add(pod("older", 1, { session: "01OLD" }));
    on.session(session);
    await on.add(pod("a", 10), pod("ignored", 10, { kind: "pod.changed" }), pod("b", 10));
    await on.add(pod("c", 11), image("i", 11), pod("d", 12), pod("e", 12));
    const { got, head } = await listen();
    await until(() => got.length === 4, { message: "history" });
    expect(got).toEqual([["a", "b"], ["c"], ["i"], ["d", "e"]]);
    expect(head).toEqual({ position: on.endPosition(1), session });
    await on.addTogether(pod("f", 13), pod("g", 13));
    await until(() => got.length === 5, { message: "what is live" });
    await on.add(pod("h", 14, { session: "01B" }));
    await until(() => got.length === 6, { message: "a later session" });
    expect(got.slice(4)).toEqual([["f", "g"], ["h"]]);
  });

  it("waits for nothing: what comes alone goes alone, though it be of the same observation", async () => {
    on.session(session);
    const { got } = await listen();
    await on.add(pod("a", 10));
    await until(() => got.length === 1, { message: "the first" });
    await on.add(pod("b", 10));
    await until(() => got.length === 2, { message: "the second" });
    expect(got).toEqual([["a"], ["b"]]);
  });

  it("grows no message beyond what clients take", async () => {
    on.session(session);
    const large = (id: string) =>
      pod(id, 10, { detail: { $case: "pod", value: { pod: id, name: "n".repeat(400_000) } } } as Partial<Fields>);
    for (const ids of ["abcd", "efgh"]) await on.add(...[...ids].map(large));
    const { got } = await listen({ until_time: 11n });
    await until(() => got.flat().length === 8, { message: "all" });
    expect(got).toEqual([
      ["a", "b", "c"],
      ["d", "e", "f"],
      ["g", "h"],
    ]);
  });

  it("starts where the call says", async () => {
    on.session(session);
    await on.add(pod("a", 10), pod("b", 11));
    const { got, head } = await listen({}, { after: on.position(1) });
    await until(() => got.length === 1, { message: "the second" });
    expect([got, head.position]).toEqual([[["b"]], on.position(1)]);
  });

  it("is nothing before a source has a session, and then all of it", async () => {
    const { got, head } = await listen();
    expect(head).toEqual({ position: on.position(0), session: "" });
    await on.add(pod("a", 10));
    await until(() => got.length === 1, { message: "the first event" });
  });

  it("is what passes the whole filter", async () => {
    on.session(session);
    await on.add(pod("a", 10), pod("b", 10), image("a", 10), pod("a", 10, { kind: "pod.exited" }), pod("a", 12));
    const { got, done } = await listen({ ids: ["a"], types: [3, 8], since_time: 9n, until_time: 12n });
    await done;
    expect(got).toEqual([["a"], ["a"]]);
  });
});

describe("where it ends", () => {
  it("is at once when `until_time` is past, with all that was before", async () => {
    on.session(session);
    await on.add(pod("a", 10), pod("b", 11), pod("c", 12));
    const { got, done } = await listen({ until_time: 12n });
    await done;
    expect(got).toEqual([["a"], ["b"]]);
  });

  it("is at `until_time` when that is to come", async () => {
    on.session(session);
    await on.add(pod("a", 10));
    const end = now() + 2;
    const { got, done } = await listen({ until_time: BigInt(end) });
    await on.add(pod("late", end));
    await done;
    expect(now()).toBeGreaterThanOrEqual(end);
    expect(got).toEqual([["a"]]);
  });

  it("is that of the session which the call names", async () => {
    on.session(session);
    await on.add(pod("a", 10));
    const named = await listen({}, { session });
    await until(() => named.got.length === 1, { message: "the history" });
    await on.add(
      pod("b", 11),
      pod("of an older one, imported now", 11, { session: "00" }),
      { kind: "session.ended", channel: "tapedeck", session },
      pod("c", 12, { session: "01B" }),
    );
    await named.done;
    expect(named.got).toEqual([["a"], ["b"]]);
    on.session(session, { ended: true, end_position: on.position(4) });
    on.session("01B");
    const over = await listen({}, { session });
    await over.done;
    expect(over.got).toEqual([["a"], ["b"]]);
  });
});

it("a `since_time` to come keeps it silent until then, and goes on from there", async () => {
  on.session(session);
  const start = now() + 2;
  await on.add(pod("early", start), pod("of a clock that is ahead", start + 5));
  const { got } = await listen({ since_time: BigInt(start) });
  await until(() => got.length === 1, { message: "the first" });
  expect(now()).toBeGreaterThanOrEqual(start);
  expect(got).toEqual([["of a clock that is ahead"]]);
});

describe("refused requests", () => {
  it("is a `since_time` after `until_time`", async () => {
    const pending = listen({ since_time: 12n, until_time: 11n });
    const details = { field: "filter.since_time" };
    await expect(pending).rejects.toMatchObject({ code: "invalid_argument", details });
  });

  it("is a moment, and a session that nobody knows", async () => {
    await expect(listen({}, { at: on.position(1) })).rejects.toMatchObject({ details: { field: "at" } });
    await expect(listen({}, { session: "x" })).rejects.toMatchObject({ code: "unknown_session" });
  });
});
