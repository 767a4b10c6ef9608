import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { type ConnectOptions, patientClient } from "./client.ts";
import { TapedeckError } from "./error.ts";
import { type FakeGateway, fakeGateway, type ReceivedMessage, type Script } from "./testing/fake-gateway.ts";

// What a real gateway does seldom, or never as long as all goes well.

const caughtUp = ({ id }: ReceivedMessage) => ({ type: "caught_up", id, position: "t-1" });

const clientOf = ({ url }: FakeGateway, quietMs = 15_000, options: Partial<ConnectOptions> = {}) =>
  patientClient({ url, ...options }, { backoff: { first: 2, max: 20 }, quietMs });

/** Reads in the background. */
function reading(items: AsyncIterable<unknown>) {
  const got: unknown[] = [];
  const read = async () => {
    for await (const item of items) got.push(item);
  };
  const ended = read();
  ended.catch(() => {});
  return { got, ended };
}

const subscribes = (gateway: FakeGateway) => gateway.said.filter(({ type }) => type === "subscribe");

it("asks a gateway that says nothing whether it is there, and stays while it is", async () => {
  await using gateway = await fakeGateway({ hears: (message, send) => send(caughtUp(message)) });
  using tapedeck = clientOf(gateway, 500);
  const { got } = reading(tapedeck.subscribe());
  await until(() => gateway.said.filter(({ type }) => type === "ping").length > 2, { message: "some pings" });
  expect(gateway.sockets).toHaveLength(1);
  expect(got).toEqual([{ type: "caught_up", position: "t-1" }]);
});

it("does not take a gateway for gone where it was held up itself", async () => {
  const quietMs = 200;
  let isHeldUp = false;
  const pinged = () => {
    if (isHeldUp) return;
    isHeldUp = true;
    // The answer is read only after the next check is due: what follows this are timers.
    for (const start = performance.now(); performance.now() - start < 3 * quietMs; );
  };
  await using gateway = await fakeGateway({ hears: (message, send) => send(caughtUp(message)), pinged });
  using tapedeck = clientOf(gateway, quietMs);
  reading(tapedeck.subscribe());
  await until(() => isHeldUp, { message: "a ping" });
  await until(() => gateway.said.filter(({ type }) => type === "ping").length > 1, { message: "another one" });
  expect(gateway.said.find(({ type, on }) => type === "ping" && on > 0)).toBeUndefined();
});

it("leaves one that answers nothing, and tries again", async () => {
  const reported: boolean[] = [];
  await using gateway = await fakeGateway({ hears: () => {}, answersPings: false });
  using tapedeck = clientOf(gateway, 20, { onConnection: (isOpen) => reported.push(isOpen) });
  reading(tapedeck.subscribe({ after: "t-7" }));
  await until(() => subscribes(gateway).length > 2, { message: "it to try again" });
  expect(subscribes(gateway)[2]).toMatchObject({ after: "t-7" });
  // Each on a connection of its own; one that was left before it was open has said nothing.
  expect(new Set(subscribes(gateway).map(({ on }) => on)).size).toBe(subscribes(gateway).length);
  expect(reported.slice(reported.indexOf(true)).slice(0, 4)).toEqual([true, false, true, false]);
});

it("says when not even the first connection can be made, once, and when it is there", async () => {
  const reported: boolean[] = [];
  const notReady = { status: 503, body: { error: { code: "not_ready", message: "the log is unavailable" } } };
  let requestCount = 0;
  const refuses = () => (++requestCount > 6 ? undefined : notReady);
  await using gateway = await fakeGateway({ hears: (message, send) => send(caughtUp(message)), refuses });
  using tapedeck = clientOf(gateway, 15_000, { onConnection: (isOpen) => reported.push(isOpen) });
  const { got } = reading(tapedeck.subscribe());
  await until(() => got.length === 1, { message: "the connection that is let in" });
  expect(reported).toEqual([false, true]);
});

it("goes on after the last message that came, without the state that came", async () => {
  await using gateway = await fakeGateway({
    hears({ type, id, on }, send, socket) {
      if (type !== "subscribe") return;
      if (on === 0) {
        send({ type: "state", id, position: "t-3", source: "s", state: {} });
        send({ type: "event", id, position: "t-5", event: { position: "t-5" } });
        socket.close(1001);
      } else send({ type: "bookmark", id, position: "t-8" });
    },
  });
  using tapedeck = clientOf(gateway);
  const { got } = reading(tapedeck.subscribe({ state: true, sources: ["alice/shop"], kinds: ["build.*"] }));
  await until(() => got.length === 3, { message: "all messages" });
  const filter = { sources: ["alice/shop"], kinds: ["build.*"] };
  expect(subscribes(gateway)).toEqual([
    { type: "subscribe", id: "1", filter, state: true, on: 0 },
    { type: "subscribe", id: "2", filter, after: "t-5", on: 1 },
  ]);
});

it("learns once where `now` is, and ends there after a cut too", async () => {
  await using gateway = await fakeGateway({
    hears({ type, id, on, until: end }, send, socket) {
      if (type !== "subscribe") return;
      if (end === "now" || on === 1) return send({ type: "complete", id, position: "t-9" });
      send({ type: "event", id, position: "t-5", event: { position: "t-5" } });
      socket.close(1001);
    },
  });
  using tapedeck = clientOf(gateway);
  const { got, ended } = reading(tapedeck.subscribe({ after: "start", until: "now" }));
  await ended;
  expect(got.map((message) => (message as { type: string }).type)).toEqual(["event", "complete"]);
  expect(subscribes(gateway).map(({ after, until: end }) => [after, end])).toEqual([
    ["now", "now"],
    ["start", "t-9"],
    ["t-5", "t-9"],
  ]);
});

it("takes nothing for a subscription that was meant for an earlier one", async () => {
  await using gateway = await fakeGateway({
    hears({ type, id }, send) {
      if (type === "subscribe") for (let n = 1; n <= 5; n++) send({ type: "event", id, position: `t-${n}`, event: {} });
      // It has not heard yet that it is to stop.
      if (type === "unsubscribe") send({ type: "event", id, position: "t-6", event: {} });
    },
  });
  using tapedeck = clientOf(gateway, 15_000, { maxWaiting: 1 });
  const messages = tapedeck.subscribe()[Symbol.asyncIterator]();
  expect(await messages.next()).toMatchObject({ value: { position: "t-1" } });
  const second = messages.next();
  await until(() => subscribes(gateway).length === 2, { message: "it to ask again" });
  expect(subscribes(gateway)[1]).toMatchObject({ after: "t-1", id: "2" });
  // The fake one always begins at t-1: it is from the second subscription, and not t-2 of the first.
  expect(await second).toMatchObject({ value: { position: "t-1" } });
  await messages.return?.();
});

it("stops nothing for a consumer that takes what comes, however much that is in all", async () => {
  let report: (position: number) => void = () => {};
  await using gateway = await fakeGateway({
    hears({ type, id }, send) {
      if (type !== "subscribe") return;
      report = (position) =>
        send({ type: "event", id, position: `t-${position}`, event: { position: `t-${position}` } });
      report(1);
    },
  });
  using tapedeck = clientOf(gateway, 15_000, { maxWaiting: 200 });
  let position = 1;
  for await (const message of tapedeck.subscribe()) {
    expect(message).toMatchObject({ position: `t-${position}` });
    if (position === 20) break;
    report(++position);
  }
  expect(subscribes(gateway)).toHaveLength(1);
});

it("says again that it leaves, where that was too much to hear", async () => {
  let received = 0;
  await using gateway = await fakeGateway({
    hears(message, send) {
      if (message.type === "subscribe") send(caughtUp(message));
      // The second of them is not obeyed at first.
      else if (++received === 2) send({ type: "error", error: { code: "limit_exceeded", message: "too fast" } });
      else send({ type: "complete", id: message.id });
    },
  });
  using tapedeck = clientOf(gateway);
  const other = reading(tapedeck.subscribe());
  const left = () => gateway.said.filter(({ type }) => type === "unsubscribe").map(({ id }) => id);
  for (const count of [1, 2]) {
    for await (const _ of tapedeck.subscribe()) break;
    await until(() => left().length === count, { message: "it to leave" });
  }
  await until(() => left().length === 3, { message: "it to say so again" });
  expect(left()[2]).toBe(left()[1]);
  expect(left()[0]).not.toBe(left()[1]);
  expect([gateway.sockets.length, other.got.length]).toEqual([1, 1]);
});

describe("an error that passes is tried again", () => {
  it.each(["not_ready", "limit_exceeded"])("%s of a subscription, on the same socket", async (code) => {
    await using gateway = await fakeGateway({
      hears(message, send) {
        if (subscribes(gateway).length < 4) send({ type: "error", id: message.id, error: { code, message: "later" } });
        else send(caughtUp(message));
      },
    });
    using tapedeck = clientOf(gateway);
    const { got } = reading(tapedeck.subscribe());
    await until(() => got.length === 1, { message: "it to be there" });
    expect(gateway.sockets).toHaveLength(1);
  });

  it.each([503, 429, 502])("a socket that is refused with %i", async (status) => {
    let left = 3;
    await using gateway = await fakeGateway({
      hears: (message, send) => send(caughtUp(message)),
      refuses: () => (left-- > 0 ? { status, body: { error: { code: "not_ready", message: "later" } } } : undefined),
    });
    using tapedeck = clientOf(gateway);
    const { got } = reading(tapedeck.subscribe());
    await until(() => got.length === 1, { message: "it to be there" });
  });
});

describe("an error that does not pass is thrown, by everything that is read", () => {
  const error = { code: "unauthenticated", message: "the token has expired" };
  const refusing = (hears: Script["hears"]): Script => ({ hears });

  it.each<[string, string, Script]>([
    ["an error to nobody", "unauthenticated", refusing((_, send) => send({ type: "error", error }))],
    ["a close with 4401", "unauthenticated", refusing((_message, _send, socket) => socket.close(4401, "expired"))],
    ["a close with 4429", "limit_exceeded", refusing((_message, _send, socket) => socket.close(4429))],
    ["no Tapedeck at all", "invalid_argument", refusing((_message, _send, socket) => socket.send("hello"))],
    ["a 401", "unauthenticated", { hears: () => {}, refuses: () => ({ status: 401, body: { error } }) }],
  ])("%s", async (_, code, script) => {
    await using gateway = await fakeGateway(script);
    using tapedeck = clientOf(gateway);
    const all = [reading(tapedeck.events()), reading(tapedeck.subscribe())];
    for (const { ended } of all) {
      const thrown: unknown = await ended.catch((reason: unknown) => reason);
      expect(thrown).toBeInstanceOf(TapedeckError);
      expect(thrown).toMatchObject({ code });
    }
    const isOver = () => gateway.sockets.every(({ readyState, CLOSED }) => readyState === CLOSED);
    await until(isOver, { message: "nothing to stay open" });
  });

  it("and the next read begins anew, though nobody has read it yet", async () => {
    await using gateway = await fakeGateway({ hears: (message, send) => send(caughtUp(message)) });
    const reported: boolean[] = [];
    using tapedeck = clientOf(gateway, 15_000, { onConnection: (isOpen) => reported.push(isOpen) });
    const idle = tapedeck.subscribe()[Symbol.asyncIterator]();
    await idle.next();
    gateway.sockets[0]?.close(4401, error.message);
    await until(() => reported.length === 2, { message: "it to be closed" });
    const { got } = reading(tapedeck.subscribe());
    await until(() => got.length === 1, { message: "another one to be there" });
    await expect(idle.next()).rejects.toMatchObject(error);
  });

  it("a state that is too much to ask, too", async () => {
    const tooMuch = { code: "limit_exceeded", message: "it took too long" };
    await using gateway = await fakeGateway({ hears: ({ id }, send) => send({ type: "error", id, error: tooMuch }) });
    using tapedeck = clientOf(gateway);
    await expect(reading(tapedeck.subscribe({ state: true })).ended).rejects.toMatchObject(tooMuch);
  });
});

it("shows its token as browsers can", async () => {
  await using gateway = await fakeGateway({ hears: (message, send) => send(caughtUp(message)) });
  using tapedeck = clientOf(gateway, 15_000, { token: "tdk_abc-_1" });
  for await (const _ of tapedeck.subscribe()) break;
  expect(gateway.protocols.map((text) => text.replaceAll(" ", ""))).toEqual([
    "tapedeck.v1.json,tapedeck.bearer.tdk_abc-_1",
  ]);
});
