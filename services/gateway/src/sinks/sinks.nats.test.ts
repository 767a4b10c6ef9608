import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { afterEach, expect, it } from "vitest";
import { type ReceivedEvent, type ReceivedRequest, startReceiver } from "./testing/receiver.ts";
import { startSinkHarness } from "./testing/sink-harness.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

async function harness() {
  const on = stack.use(await startSinkHarness());
  const receiver = stack.use(await startReceiver());
  return { on, receiver, alice: on.writer("alice") };
}

const ordinals = (events: readonly ReceivedEvent[]) => events.map(({ data }) => data.ordinal);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const has = (ordinal: number) => (request: ReceivedRequest) =>
  request.events.some((event) => event.data.ordinal === ordinal);

it("delivers what is recorded before and after it was added, once and in order", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await alice.append(250);
  expect((await gateway.add("hook", receiver)).status).toBe(201);
  await until(() => receiver.accepted.length >= 250, { message: "the history" });
  await alice.append(10);
  await until(() => receiver.accepted.length >= 260, { message: "the live events" });
  expect(ordinals(receiver.accepted)).toEqual(upTo(260));
  await until(async () => (await gateway.sink("hook"))?.lagEvents === 0, { message: "the report" });
  const sink = {
    state: "delivering",
    parked: 0,
    error: null,
    signed: true,
    target: `http://127.0.0.1:${receiver.port}/…`,
  };
  expect(await gateway.sink("hook")).toMatchObject(sink);
  expect(await gateway.metrics()).toMatch(/tapedeck_gateway_sink_events_total\{.*sink="hook".*\} 260\n/);
});

it("is added once by calls of one name at the same time, and the other calls are refused", async () => {
  const { on, receiver, alice } = await harness();
  const gateways = [stack.use(await on.gateway()), stack.use(await on.gateway())] as const;
  await alice.append(3);
  const calls = [0, 1, 2, 3].map((n) => gateways[n % 2 === 0 ? 0 : 1].add("hook", { url: `${receiver.url}/${n}` }));
  const answers = await Promise.all(calls);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400, 400, 400]);
  for (const { status, body } of answers) if (status === 400) expect(body.error).toMatchObject({ field: "name" });
  await until(() => receiver.accepted.length === 3, { message: "the events" });
  const path = `/hook/${answers.findIndex(({ status }) => status === 201)}`;
  expect(receiver.requests.map((request) => request.path)).toEqual([path]);
});

it("delivers only what its filter wants, and passes the rest", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await gateway.add("failures", receiver, { filter: { kinds: ["*.failed"] }, mode: "structured" });
  await alice.append(20);
  await alice.append(1, { kind: "build.failed" });
  const lastSeq = await alice.append(20);
  await until(() => receiver.accepted.length > 0, { message: "the failure" });
  expect(receiver.accepted).toMatchObject([{ type: "dev.tapedeck.build.failed", data: { ordinal: 21 } }]);
  const isPassed = async () =>
    String((await gateway.sink("failures"))?.position).startsWith(`2${lastSeq.toString(36)}`);
  await until(isPassed, { message: "the cursor to pass the rest" });
  expect(receiver.requests).toHaveLength(1);
});

it("waits as long as its target asks, and has one request in flight", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  const at: number[] = [];
  receiver.answer = () => {
    at.push(performance.now());
    return at.length === 1 ? { status: 503, headers: { "retry-after": "1" } } : { status: 200 };
  };
  await alice.append(5);
  await gateway.add("hook", receiver);
  await until(async () => (await gateway.sink("hook"))?.state === "retrying", { message: "the report of the failure" });
  expect(await gateway.sink("hook")).toMatchObject({ error: "answered 503", failure: "away" });
  await until(() => receiver.accepted.length === 5, { message: "the second attempt" });
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(995);
  const [first, second] = receiver.requests.map(({ headers }) => headers["webhook-id"]);
  expect(first).toBe(second);
  await until(async () => (await gateway.sink("hook"))?.state === "delivering", { message: "the end of the failure" });
});

it("parks an event that its target refuses, goes on, and retries it by hand", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  receiver.answer = (request) => (has(37)(request) ? { status: 422, body: "no 37 here" } : { status: 200 });
  await alice.append(100);
  await gateway.add("hook", receiver);
  await until(() => receiver.accepted.length === 99, { message: "all others" });
  expect(ordinals(receiver.accepted)).toEqual(upTo(100).filter((ordinal) => ordinal !== 37));
  await until(async () => (await gateway.sink("hook"))?.parked === 1, { message: "the count" });
  expect(receiver.tests).toHaveLength(2);
  const { items } = (await gateway.call("GET", "/hook/parked")).body;
  expect(items).toMatchObject([
    { event: "s.v1.37", kind: "build.started", status: 422, error: "answered 422: no 37 here" },
  ]);

  expect((await gateway.call("POST", "/hook/parked/retry", {})).body.items).toMatchObject([
    { accepted: false, status: 422 },
  ]);
  receiver.answer = () => ({ status: 200 });
  expect((await gateway.call("POST", "/hook/parked/retry", {})).body.items).toMatchObject([{ accepted: true }]);
  expect(ordinals(receiver.accepted).at(-1)).toBe(37);
  expect((await gateway.call("GET", "/hook/parked")).body.items).toEqual([]);
});

it("parks an event no longer that is accepted after a rewind", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  receiver.answer = (request) => ({ status: has(2)(request) || has(3)(request) ? 422 : 200 });
  await alice.append(4);
  await gateway.add("hook", receiver);
  await until(async () => (await gateway.sink("hook"))?.parked === 2, { message: "the parked events" });
  receiver.answer = (request) => ({ status: has(3)(request) ? 422 : 200 });
  await gateway.call("POST", "/hook/rewind", { to: "start" });
  await until(async () => (await gateway.sink("hook"))?.parked === 1, { message: "the event to be accepted" });
  await until(() => ordinals(receiver.accepted).filter((ordinal) => ordinal === 4).length === 2, {
    message: "the rest",
  });
  expect((await gateway.call("GET", "/hook/parked")).body.items).toMatchObject([{ event: "s.v1.3" }]);
});

it("parks nothing while its target is not well", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  receiver.answer = () => ({ status: 500 });
  await alice.append(3);
  await gateway.add("hook", receiver);
  await until(() => receiver.tests.length > 3, { message: "suspicions" });
  receiver.answer = () => ({ status: 401 });
  await until(() => receiver.tests.length > 10, { message: "more of them" });
  expect((await gateway.sink("hook"))?.parked).toBe(0);
  receiver.answer = () => ({ status: 200 });
  await until(() => receiver.accepted.length === 3, { message: "all" });
  expect(ordinals(receiver.accepted)).toEqual([1, 2, 3]);
});

it("stands still with too many parked events, and goes on when they are dropped", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  receiver.answer = ({ events: [first] }) => ({ status: first?.type === "dev.tapedeck.sink.test" ? 200 : 400 });
  await alice.append(120);
  await gateway.add("hook", receiver, { mode: "structured" });
  await until(async () => (await gateway.sink("hook"))?.state === "full", { message: "the bound" });
  expect((await gateway.sink("hook"))?.parked).toBe(100);
  receiver.answer = () => ({ status: 200 });
  expect((await gateway.call("POST", "/hook/parked/drop", {})).body).toEqual({ dropped: 100 });
  await until(() => receiver.accepted.length >= 19, { message: "the rest" });
  expect(ordinals(receiver.accepted).at(-1)).toBe(120);
});

it("stands still while it is paused, and delivers again from where it is rewound to", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await gateway.add("hook", receiver);
  await alice.append(5);
  await until(() => receiver.accepted.length === 5, { message: "the first events" });
  expect((await gateway.call("POST", "/hook/pause")).body.state).toBe("paused");
  await alice.append(5);
  expect((await gateway.call("POST", "/hook/rewind", { to: "start" })).body.state).toBe("paused");
  expect(receiver.accepted).toHaveLength(5);
  await gateway.call("POST", "/hook/resume");
  await until(() => receiver.accepted.length >= 15, { message: "all of them again" });
  expect(ordinals(receiver.accepted)).toEqual([...upTo(5), ...upTo(10)]);
  await gateway.call("POST", "/hook/rewind", { to: "start" });
  await until(() => receiver.accepted.length >= 25, { message: "all of them once more" });
  expect((await gateway.call("DELETE", "/hook")).body).toEqual({ name: "hook" });
  await alice.append(5);
  expect((await gateway.call("GET", "")).body.items).toEqual([]);
  expect((await gateway.call("DELETE", "/hook")).status).toBe(404);
});

it("says how far it is behind while it is paused", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await gateway.add("hook", receiver);
  await until(async () => (await gateway.sink("hook"))?.state === "delivering", { message: "its begin" });
  await gateway.call("POST", "/hook/pause");
  await alice.append(5);
  expect(await gateway.sink("hook")).toMatchObject({ state: "paused", lagEvents: 5, lagSeconds: 0 });
});

it("is counted no more once it is removed", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await alice.append(1);
  for (const name of ["hook", "other"]) await gateway.add(name, receiver);
  const counted = async () => [
    ...(await gateway.metrics()).matchAll(/sink_(?:events|requests)_total\{.*sink="(\w+)"/g),
  ];
  const names = async () => [...new Set((await counted()).map(([, name]) => name))].toSorted();
  await until(async () => (await names()).length === 2, { message: "both to be counted" });
  await gateway.call("DELETE", "/hook");
  expect(await names()).toEqual(["other"]);
});

it("answers with the place that was asked for, and not with how far it is by then", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await alice.append(5);
  const start = (await gateway.add("paused", receiver)).body.position;
  await gateway.call("POST", "/paused/pause");
  for (const name of ["hook", "other", "third"]) {
    const added = await gateway.add(name, receiver);
    expect(added.body.position).toBe(start);
    await until(async () => (await gateway.sink(name))?.position !== start, { message: "it to go on" });
    expect((await gateway.call("POST", `/${name}/rewind`, { to: "start" })).body.position).toBe(start);
    expect((await gateway.call("POST", `/${name}/rewind`, { to: start })).body.position).toBe(start);
  }
});

it("loses nothing when it is paused, or its gateway stops, while its target refuses", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = await on.gateway();
  receiver.answer = () => ({ status: 500 });
  await gateway.add("hook", receiver);
  await alice.append(3);
  await until(async () => (await gateway.sink("hook"))?.state === "retrying", { message: "the first failure" });
  await gateway.call("POST", "/hook/pause");
  await gateway.call("POST", "/hook/resume");
  const { length } = receiver.requests;
  await until(() => receiver.requests.length > length, { message: "further attempts" });
  await gateway[Symbol.asyncDispose]();
  receiver.answer = () => ({ status: 200 });
  stack.use(await on.gateway());
  await until(() => receiver.accepted.length >= 3, { message: "all events" });
  expect(ordinals(receiver.accepted)).toEqual([1, 2, 3]);
});

it("is delivered by one gateway, and by another one as soon as that stops", async () => {
  const { on, receiver, alice } = await harness();
  const gateways = [await on.gateway(), stack.use(await on.gateway())] as const;
  await gateways[0].add("hook", receiver);
  await alice.append(5);
  await until(() => receiver.accepted.length === 5, { message: "the first events" });
  const counts = await Promise.all(gateways.map(async (one) => (await one.metrics()).includes("sink_events_total{")));
  expect(counts.filter(Boolean)).toHaveLength(1);
  await gateways[0][Symbol.asyncDispose]();
  await alice.append(5);
  await until(() => receiver.accepted.length >= 10, { message: "the next events" });
  expect(ordinals(receiver.accepted)).toEqual(upTo(10));
});

it("of the settings is changed there, and may be paused and rewound", async () => {
  const { on, receiver, alice } = await harness();
  const sinks = JSON.stringify([
    { name: "ops", target: receiver.url, start: "start", secret: `whsec_${"A".repeat(40)}` },
  ]);
  const gateway = await on.gateway({ SINKS: sinks });
  await alice.append(3);
  await until(() => receiver.accepted.length === 3, { message: "the events" });
  expect(await gateway.sink("ops")).toMatchObject({ origin: "settings" });
  expect((await gateway.call("DELETE", "/ops")).body.error).toMatchObject({ code: "invalid_argument" });
  expect((await gateway.add("ops", receiver)).body.error).toMatchObject({ code: "invalid_argument", field: "name" });
  await gateway.call("POST", "/ops/pause");
  await gateway[Symbol.asyncDispose]();
  await alice.append(2);
  const again = stack.use(await on.gateway({ SINKS: sinks }));
  await until(async () => (await again.sink("ops"))?.state === "paused", { message: "it to be paused still" });
  await again.call("POST", "/ops/resume");
  await until(() => receiver.accepted.length >= 5, { message: "what came meanwhile" });
  expect(ordinals(receiver.accepted)).toEqual(upTo(5));
});

it("shows its secrets once, to the admin who adds it, and nothing to other workspaces", async () => {
  const { on, receiver } = await harness();
  const gateway = stack.use(await on.gateway({ AUTH: "tokens" }));
  const tokens = await openTokenStore(on.connection);
  const bearer = async (workspace: string, ...roles: Role[]) => {
    const made = makeToken({ name: "a test", workspace, roles, lifetimeMs: 3_600_000 });
    await tokens.create(made);
    return { authorization: `Bearer ${made.text}` };
  };
  const [admin, viewer] = [await bearer("default", "admin"), await bearer("default", "viewer")];
  const other = await bearer("globex", "admin");
  const body = {
    name: "hook",
    target: `${receiver.url}/path-secret?token=query-secret`,
    headers: { "x-key": "header-secret" },
  };
  expect((await gateway.call("POST", "", body, viewer)).body.error).toMatchObject({ code: "forbidden" });
  const added = await gateway.call("POST", "", body, admin);
  const { secret } = added.body;
  expect(secret).toMatch(/^whsec_/);
  for (const caller of [admin, viewer]) {
    const listed = JSON.stringify((await gateway.call("GET", "", undefined, caller)).body);
    expect(listed).toContain("x-key");
    for (const text of ["path-secret", "query-secret", "header-secret", String(secret)])
      expect(listed).not.toContain(text);
  }
  expect((await gateway.call("GET", "", undefined, other)).body.items).toEqual([]);
  for (const [method, path] of [
    ["POST", "/hook/pause"],
    ["POST", "/hook/test"],
    ["DELETE", "/hook"],
    ["GET", "/hook/parked"],
  ] as const) {
    expect((await gateway.call(method, path, undefined, viewer)).status).toBe(403);
    expect((await gateway.call(method, path, undefined, other)).status).toBe(404);
  }
  const audit = await fetch(`http://${gateway.http}/api/v1/audit`, { headers: admin });
  const entries = (await audit.text()).trim().split("\n");
  expect(entries.filter((line) => line.includes('"sink.added"'))).toHaveLength(1);
  expect(entries.join()).not.toMatch(/path-secret|query-secret|header-secret|whsec_/);
});

it("of the settings shows no admin what of other developers is parked, where they are hidden", async () => {
  const { on, receiver, alice } = await harness();
  const sinks = JSON.stringify([{ name: "ops", target: receiver.url, start: "start" }]);
  const settings = { AUTH: "tokens", PRIVACY_DEVELOPERS: "hidden-from-admins", SINKS: sinks };
  const gateway = stack.use(await on.gateway(settings));
  const made = makeToken({ name: "a test", workspace: "default", roles: ["admin"], lifetimeMs: 3_600_000 });
  await (await openTokenStore(on.connection)).create(made);
  const admin = { authorization: `Bearer ${made.text}` };
  receiver.answer = (request) => (has(1)(request) ? { status: 422, body: "not of alice" } : { status: 200 });
  await alice.append(1);
  const items = async () => (await gateway.call("GET", "", undefined, admin)).body.items;
  await until(async () => (await items())?.[0]?.parked === 1, { message: "the parked event" });
  expect(JSON.stringify(await items())).not.toContain("alice");
  for (const [method, path] of [
    ["GET", "/ops/parked"],
    ["POST", "/ops/parked/retry"],
    ["POST", "/ops/parked/drop"],
    ["POST", "/ops/test"],
    ["POST", "/ops/rewind"],
    ["POST", "/ops/pause"],
    ["DELETE", "/ops"],
  ] as const) {
    const { status, body } = await gateway.call(method, path, method === "GET" ? undefined : {}, admin);
    expect([path, status, body.error?.code]).toEqual([path, 403, "forbidden"]);
    expect(JSON.stringify(body)).not.toContain("alice");
  }
});

it("refuses targets that are not public, unless the settings name them", async () => {
  const { on } = await harness();
  const gateway = stack.use(await on.gateway({ GATEWAY_SINK_HOSTS: "127.0.0.1:9" }));
  for (const url of [
    "https://127.0.0.1/",
    "https://10.1.2.3/",
    "http://hooks.example/",
    "https://[::ffff:127.0.0.1]/",
  ]) {
    expect((await gateway.add("hook", { url })).body.error).toMatchObject({
      code: "invalid_argument",
      field: "target",
    });
  }
  expect((await gateway.add("hook", { url: "http://127.0.0.1:9/" })).status).toBe(201);
  expect((await gateway.call("POST", "/hook/test")).body).toMatchObject({ accepted: false, status: null });
});

it("goes with its workspace", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  await alice.append(1);
  await gateway.add("hook", receiver);
  await until(() => receiver.accepted.length === 1, { message: "the event" });
  const removal = {
    workspace: "default",
    epochs: [on.log.epoch],
    state: "done",
    began: new Date().toISOString(),
    who: "x",
    kind: "local",
  };
  on.connection.publish("$KV.TAPEDECK_WORKSPACES.removal.default", JSON.stringify(removal));
  await until(async () => (await gateway.call("GET", "")).body.items?.length === 0, { message: "its end" });
  expect(await new SinkStore(on.connection).all(["sink", "cursor", "status"])).toEqual([]);
});

it("parks no event of a session that is being erased, and drops what was parked of it", async () => {
  const { on, receiver, alice } = await harness();
  const gateway = stack.use(await on.gateway());
  receiver.answer = (request) => ({ status: has(2)(request) ? 400 : 200 });
  const lastSeq = await alice.append(3);
  await gateway.add("hook", receiver);
  await until(async () => (await gateway.sink("hook"))?.parked === 1, { message: "the parked event" });
  const erasure = {
    source: "default/alice/shop/skaffold",
    session: "s",
    epoch: on.log.epoch,
    lastSeq,
    removedSeq: 0,
    removed: 0,
  };
  const rest = { state: "removing", began: new Date().toISOString(), who: "x", kind: "local" };
  on.connection.publish("$KV.TAPEDECK_ERASURES.open.s", JSON.stringify({ ...erasure, ...rest }));
  await until(async () => (await gateway.sink("hook"))?.parked === 0, { message: "it to be dropped" });
  await gateway.call("POST", "/hook/rewind", { to: "start" });
  const bob = on.writer("bob");
  await bob.append(1, { session: "t" });
  await until(() => receiver.accepted.some(({ id }) => id === "t.v1.1"), { message: "the event of another session" });
  expect(receiver.accepted.map(({ id }) => id)).toEqual(["s.v1.1", "s.v1.3", "t.v1.1"]);
});

it("costs a gateway without sinks neither a bucket nor a lease", async () => {
  const { on, receiver } = await harness();
  const gateway = stack.use(await on.gateway());
  expect((await gateway.call("GET", "")).body).toEqual({ items: [] });
  const store = new SinkStore(on.connection);
  expect(await store.owner()).toEqual({ owner: undefined, revision: 0 });
  await gateway.add("hook", receiver);
  await until(async () => (await store.owner()).owner !== undefined, { message: "the lease" });
  await gateway.call("DELETE", "/hook");
  await until(async () => (await store.owner()).owner === undefined, { message: "the end of the lease" });
});
