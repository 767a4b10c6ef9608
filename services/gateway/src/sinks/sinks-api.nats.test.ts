import { silentLogger } from "@tapedeck/shared/service/logger";
import { type PutOptions, type SinkKey, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import type { CallContext } from "../call-context.ts";
import { Sinks, type SinksDeps } from "./sinks.ts";
import { sinksApi } from "./sinks-api.ts";
import { startReceiver } from "./testing/receiver.ts";
import { shortTimes, startSinkHarness } from "./testing/sink-harness.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

/** Calls `before` with each entry before it is written or removed. */
class WatchedStore extends SinkStore {
  before: (key: SinkKey) => Promise<void> = async () => {};

  override async put(key: SinkKey, value: object, options?: PutOptions) {
    await this.before(key);
    return super.put(key, value, options);
  }

  override async remove(key: SinkKey, options?: Pick<PutOptions, "revision">) {
    await this.before(key);
    return super.remove(key, options);
  }
}

const caller: CallContext = {
  workspace: "default",
  who: "a test",
  kind: "local",
  signal: new AbortController().signal,
};

/** The API on sinks that are delivered, with a store of its own. `isAway`: what was stored can't be read back. */
async function harness() {
  const on = stack.use(await startSinkHarness());
  const receiver = stack.use(await startReceiver());
  const link = {
    opened: new Promise<never>(() => {}),
    nats: () => ({ connection: on.connection }),
    workspaces: () => ({ removalOf: () => undefined }),
  };
  const settings = { allowed: ["127.0.0.1"], page: "", sinks: [] };
  const logOf = async () => on.log.reader;
  const counts = { delivered: () => {}, attempted: () => {}, forget: () => {} };
  const causeOf = async () => undefined;
  const deps = { settings, link, logOf, counts, causeOf, logger: silentLogger, times: shortTimes };
  const sinks = stack.use(new Sinks(deps as unknown as SinksDeps));
  const store = new WatchedStore(on.connection);
  const state = { isAway: false };
  const changed = () => (state.isAway ? Promise.reject(new Error("no answer")) : sinks.changed());
  const audited: [action: string, about: unknown][] = [];
  const api = sinksApi({
    sinks: { all: () => sinks.all(), changed, store: () => store },
    logOf,
    settings,
    causeOf,
    developers: "shown",
    audit: (action, _, about) => void audited.push([action, about]),
  });
  await api.add({ name: "hook", target: receiver.url }, caller);
  return { api, store, state, audited, receiver, alice: on.writer("alice") };
}

it("a sink that is paused while it is rewound stays paused", async () => {
  const { api, store } = await harness();
  store.before = async ({ type }) => {
    if (type !== "cursor") return;
    store.before = async () => {};
    await api.pause("hook", caller);
  };
  expect((await api.rewind("hook", { to: "start" }, caller)).state).toBe("paused");
});

it("a change of a sink is audited although nobody can say how the sink is then", async () => {
  const { api, state, audited, receiver } = await harness();
  state.isAway = true;
  const away = { code: "not_ready" };
  await expect(api.add({ name: "other", target: receiver.url }, caller)).rejects.toMatchObject(away);
  await expect(api.pause("hook", caller)).rejects.toMatchObject(away);
  await expect(api.resume("hook", caller)).rejects.toMatchObject(away);
  await expect(api.rewind("hook", { to: "start" }, caller)).rejects.toMatchObject(away);
  await expect(api.setTarget("hook", { target: receiver.url }, caller)).rejects.toMatchObject(away);
  await expect(api.remove("hook", caller)).rejects.toMatchObject(away);
  const actions = ["added", "added", "paused", "resumed", "rewound", "target-changed", "removed"];
  expect(audited.map(([action]) => action)).toEqual(actions.map((action) => `sink.${action}`));
});

it("a retry of parked events that the store cuts short is audited, and says to try again", async () => {
  const { api, store, audited, receiver, alice } = await harness();
  receiver.answer = ({ events: [first] }) => ({ status: first?.type === "dev.tapedeck.sink.test" ? 200 : 422 });
  await alice.append(2);
  const parked = async () => (await api.parked("hook", caller)).items;
  await until(async () => (await parked()).length === 2, { message: "the parked events" });
  receiver.answer = () => ({ status: 200 });
  let removals = 0;
  store.before = async () => {
    if (++removals % 2 === 0) throw new Error("no answer");
  };
  const away = { code: "not_ready", message: expect.stringMatching(/try again/) };
  await expect(api.retryParked("hook", {}, caller)).rejects.toMatchObject(away);
  expect(audited.at(-1)).toEqual(["sink.parked-retried", { sink: "hook", accepted: 2, refused: 0, away: 0 }]);
  removals = 1;
  await expect(api.dropParked("hook", {}, caller)).rejects.toMatchObject(away);
  expect(audited.at(-1)).toEqual(["sink.parked-dropped", { sink: "hook", dropped: 0 }]);
  store.before = async () => {};
  expect(await parked()).toHaveLength(1);
});
