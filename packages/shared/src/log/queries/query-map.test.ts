import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, it, onTestFinished, vi } from "vitest";
import { startTestNats } from "../../testing/nats.ts";
import { until } from "../../testing/until.ts";
import { defaultQuery, type QueryMap, QueryMapStore, queriesOf, tablesOf, watchQueryMap } from "./query-map.ts";

const entry = { at: "a:1", also: [], offered: false };

async function harness() {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startTestNats());
  const nats = stack.adopt(await connect({ servers: server.url }), (nc) => nc.close());
  const owned = stack.move();
  return { nats, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("of queries that change it at once each sees what the ones before have written", async () => {
  await using on = await harness();
  const names = Array.from({ length: 20 }, (_, index) => `q${index}:1`);
  // Each as a process of its own.
  const changes = names.map((name) =>
    new QueryMapStore(on.nats).change("acme", (is) =>
      is.at === defaultQuery ? { ...is, at: name } : { ...is, also: [...is.also, name] },
    ),
  );
  await Promise.all(changes);
  const all = tablesOf(queriesOf(await new QueryMapStore(on.nats).read(), "acme"));
  expect(all.toSorted()).toEqual(names.toSorted());
});

it("a workspace that the default query has alone needs no entry", async () => {
  await using on = await harness();
  const map = new QueryMapStore(on.nats);
  expect(await map.read()).toEqual(new Map());
  // The names of an object's own properties are names of workspaces, too.
  for (const workspace of ["acme", "constructor"]) await map.change(workspace, () => entry);
  expect([...(await map.read()).keys()]).toEqual(["acme", "constructor"]);
  await map.change("acme", () => ({ ...entry, at: defaultQuery }));
  expect([...(await map.read()).keys()]).toEqual(["constructor"]);
  expect(queriesOf(await map.read(), "acme")).toEqual({ at: defaultQuery, also: [], offered: false });
});

it("a change is heard, and found where it could not be heard", async () => {
  await using on = await harness();
  const heard: QueryMap[] = [];
  const asked: QueryMap[] = [];
  using listening = watchQueryMap(on.nats, (map) => heard.push(map));
  using asking = watchQueryMap(on.nats, (map) => asked.push(map), { aloneMs: 20, inClusterMs: 20 });
  await Promise.all([listening.loaded, asking.loaded]);
  expect(heard).toEqual([new Map()]);
  await new QueryMapStore(on.nats).change("acme", () => entry);
  await until(() => heard.at(-1)?.has("acme"), { message: "the change to be heard" });
  await until(() => asked.at(-1)?.has("acme"), { message: "the change to be found" });
  // An operator may empty the bucket, of which nobody hears.
  await (await jetstreamManager(on.nats)).streams.purge("KV_TAPEDECK_QUERIES");
  await until(() => asked.at(-1)?.size === 0, { message: "the purge to be found" });
  await new QueryMapStore(on.nats).change("globex", () => entry);
  await until(() => heard.at(-1)?.has("globex"), { message: "the change after it to be heard" });
});

it("the map of a server alone is read again after five minutes in which nobody changed it", async () => {
  await using on = await harness();
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const found: QueryMap[] = [];
  using watching = watchQueryMap(on.nats, (map) => found.push(map));
  await watching.loaded;
  const requests = vi.spyOn(on.nats, "request");
  await vi.advanceTimersByTimeAsync(299_000);
  expect(requests).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1_000);
  await until(() => found.length === 2, { message: "the map to be read again" });
});
