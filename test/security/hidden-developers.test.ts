import type { DescMethod } from "@bufbuild/protobuf";
import { ExportTablesRequest, ExportTablesResponse } from "@tapedeck/proto/tapedeck/v1/tables";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { zstd } from "@tapedeck/shared/log/batch/zstd";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { document, statsPaths } from "../stack/answer-schemas.ts";
import { httpCall } from "../stack/http-call.ts";
import { type RawClient, rawClient } from "../stack/raw-call.ts";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { both, filled, holds, rktSessionOf, vagrantSessionOf, workspaceScenario } from "../stack/two-workspaces.ts";

// Two developers of one workspace have the same recordings, and developers are hidden. A viewer of one of them calls every
// method of every service and every path of the API's description, with the names of the other in every field and parameter.

const place = (developer: string) => ({ workspace: "acme", developer });
const [alice, bob] = [workspaceScenario("globex", place("alice")), workspaceScenario("acme", place("bob"))];
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let grpc: RawClient;
/** Tokens of a viewer who is alice, of a viewer who is nobody, and of an admin. */
let hers: string;
let nobodys: string;
let admins: string;
/** The position of the last event, and the token of a list's next page at one of bob's. */
let last: string;
let page: string;

beforeAll(async () => {
  harness = cleanup.use(
    await startTokenStack({ TAPEDECK_LIMITS_CONNECTIONS: "10000", TAPEDECK_PRIVACY_DEVELOPERS: "hidden" }),
  );
  grpc = cleanup.use(rawClient(harness.on.stack.grpc));
  await harness.on.seed(alice.events);
  last = harness.on.at((await harness.on.seed(bob.events)).at(-1) ?? 0);
  hers = (await harness.token("acme", ["viewer", "controller", "recorder"])).text;
  nobodys = (await harness.token("acme", ["viewer"], 3_600_000, null)).text;
  admins = (await harness.token("acme", ["admin"])).text;
  page = JSON.parse((await http("/api/v1/operations?limit=1", admins)).body).nextPage;
});
afterAll(() => cleanup.disposeAsync());

const http = (path: string, token: string, more: Record<string, string> = {}) =>
  httpCall(harness.on.stack.http, "GET", path, { ...bearing(token), ...more });

const upstreams = ["skaffold", "rkt", "vagrant"];
const sources = upstreams.map((upstream) => `acme/bob/shop/${upstream}`);
const sessions = [bob.session, rktSessionOf(bob.session), vagrantSessionOf(bob.session)];
/** The texts that might lead to bob. The last ones are of a list's next page, and of a job that both have. */
const texts = () => ["bob", "bob/shop", ...sources, bob.session, `${bob.session}.1.1`, page, both.job];

/** Fails if bytes have something of bob's, or his name, unless the request named it. */
function expectNothing(what: string, answer: Uint8Array | string, said = "", mark = bob.mark): void {
  const found = holds(answer, mark) || (!said.includes("bob") && Buffer.from(answer).includes("bob"));
  expect(found ? `${what} ${said}: ${Buffer.from(answer).toString("latin1")}` : "").toBe("");
}

const inner = ["tapedeck.v1.Query", "tapedeck.v1.Maintain"];
const methods = [...registry]
  .flatMap((type) => (type.kind === "service" ? [type] : []))
  .filter(({ typeName }) => !inner.includes(typeName) && !typeName.includes(".sdk."))
  .flatMap((service) => service.methods);
const unary = methods.filter(({ methodKind }) => methodKind === "unary");
const streams = methods.filter(({ methodKind }) => methodKind === "server_streaming");
const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`;
const head = { "client-api-protocol": "1,1" };

async function askAll(token: string, text: string, metadata: Record<string, string> = {}) {
  const answers = unary.map(async (method) => {
    const call = grpc.open(pathOf(method), { ...head, ...bearing(token), ...metadata });
    call.write(filled(method.input, text, 0));
    call.end();
    const { code, details } = await call.over;
    return { method: pathOf(method), code, response: Buffer.concat([...call.messages, Buffer.from(details)]) };
  });
  return Promise.all(answers);
}

it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])("no method of gRPC shows a viewer another developer: by text %i", async (at) => {
  const text = ["", ...texts()][at] ?? "";
  for (const { method, response } of await askAll(hers, text)) expectNothing(method, response, text);
});

it.each(upstreams)("no metadata shows a viewer another developer: %s", async (upstream) => {
  const at = upstreams.indexOf(upstream);
  for (const metadata of [{ "tapedeck-source": sources[at] ?? "" }, { "tapedeck-session": sessions[at] ?? "" }]) {
    for (const { method, response } of await askAll(hers, "", metadata)) expectNothing(method, response, "bob");
  }
});

it("no method of gRPC shows anybody to a viewer who is nobody", async () => {
  for (const { method, response } of await askAll(nobodys, "")) {
    expectNothing(method, response);
    expectNothing(method, response, "bob", alice.mark);
  }
});

it.each([
  ["GetState", 0],
  ["ListSources", 0],
  ["ListOperations", 0],
  ["ListPods", 1],
  ["ListTargets", 2],
])("an admin sees bob by %s", async (name, at) => {
  const method = unary.find((one) => one.name === name && !one.parent.typeName.startsWith("proto"));
  const call = grpc.open(pathOf(method as DescMethod), {
    ...head,
    ...bearing(admins),
    "tapedeck-source": sources[at] ?? "",
  });
  call.write(new Uint8Array());
  call.end();
  await call.over;
  expect(holds(Buffer.concat([...call.messages]), bob.mark)).toBe(true);
});

type Described = { readonly get?: { readonly parameters?: readonly { readonly name: string; readonly in: string }[] } };

const described = Object.entries(document.paths as Readonly<Record<string, Described>>)
  .filter(([path, { get }]) => get !== undefined && !path.includes("{") && path !== "/api/v1/ws")
  .map(([path, { get }]) => ({
    path,
    parameters: (get?.parameters ?? []).filter((one) => one.in === "query").map(({ name }) => name),
  }));
/** What Skaffold's own API and the gateway serve beside the description. */
const others = ["/v1/state", "/v2/state", "/about", "/metrics", "/healthz", "/readyz"].map((path) => ({
  path,
  parameters: ["source", "session"],
}));

/** Streams that do not end are read in a test of their own; these are read until `until`. */
const ended = (path: string) => (path.endsWith("/stream") ? "after=start&until=now" : "");

it.each([...described, ...others])("GET $path shows a viewer nothing of another developer", async (route) => {
  const { path, parameters } = route;
  const bare = [`${path}?${ended(path)}`, `${path}?${ended(path)}&group=source`];
  const names = ["bob", sources[0] ?? "", bob.session, page];
  const named = parameters.flatMap((name) =>
    names.map((text) => `${path}?${ended(path)}&${new URLSearchParams({ [name]: text })}`),
  );
  const accept = path.endsWith("/events") ? ["application/json", "application/x-ndjson"] : ["*/*"];
  const expectNone = async (url: string, token: string) => {
    for (const type of accept) expectNothing(url, (await http(url, token, { accept: type })).body, url);
  };
  await Promise.all(named.map((url) => expectNone(url, hers)));
  for (const token of [hers, nobodys]) for (const url of bare) await expectNone(url, token);
});

it.each(statsPaths)("%s counts both developers, and groups only the viewer's own", async (path) => {
  type Row = Readonly<Record<string, unknown>>;
  const rows = async (query: string, token: string) =>
    (JSON.parse((await http(`${path}?${query}`, token)).body) as { readonly items: readonly Row[] }).items;
  const ofTeam = await rows("", admins);
  expect(await rows("", hers)).toEqual(ofTeam);
  expect(await rows("", nobodys)).toEqual(ofTeam);
  expect(await rows("group=project,day", hers)).toEqual(await rows("group=project,day", admins));
  const one = await rows("group=developer&developer=alice", admins);
  expect(await rows("group=developer", hers)).toEqual(one);
  expect(await rows("group=developer", nobodys)).toEqual([]);
  // What is of a session says whose it is: the same as of a developer whom nobody knows.
  const nothing = await rows("developer=nobody", admins);
  for (const session of sessions) expect(await rows(`session=${session}`, hers)).toEqual(nothing);
  for (const query of ["group=loop", "group=label.branch", "group=cause", "developer=alice", "label=branch%3Dhush"]) {
    if (path.endsWith("commands") && /loop|cause/.test(query)) continue;
    expectNothing(`${path}?${query}`, (await http(`${path}?${query}`, hers)).body);
  }
});

it("a call that names another developer is refused by a sentence with the setting, and one of a name that nobody has, too", async () => {
  for (const name of ["bob", "carol"]) {
    for (const path of ["sources?developer=NAME", "events?source=NAME/shop", "state?source=NAME/shop/rkt"]) {
      const { status, body } = await http(`/api/v1/${path.replace("NAME", name)}`, hers);
      expect([status, body]).toEqual([
        403,
        expect.stringContaining("hidden here (privacy.developers): this token sees"),
      ]);
    }
  }
  expect((await http("/api/v1/sources?developer=bob", nobodys)).body).toContain("this token is of no developer");
  expect((await http("/api/v1/sources?developer=bob", admins)).status).toBe(200);
});

it("an export of tables has the rows of the viewer's own developer", async () => {
  // The scenarios' day, and the one on which their events are recorded.
  const days = { from: "2026-11-20", to: new Date().toISOString().slice(0, 10) };
  const exported = async (token: string) => {
    const call = grpc.open("/tapedeck.v1.Tapedeck/ExportTables", { ...head, ...bearing(token) });
    call.write(Buffer.from(ExportTablesRequest.encode(ExportTablesRequest.create(days)).finish()));
    call.end();
    expect(await call.over).toMatchObject({ code: 0 });
    const bodies = call.messages.map((message) => ExportTablesResponse.decode(message).body);
    return Buffer.concat(
      bodies.map((body) =>
        body?.$case === "compressed_rows" ? zstd.decompress(body.value.zstd, body.value.size) : Buffer.of(),
      ),
    );
  };
  const own = await exported(hers);
  expect(own.includes(alice.mark)).toBe(true);
  expectNothing("ExportTables", own);
  const ofNobody = await exported(nobodys);
  expectNothing("ExportTables", ofNobody);
  expectNothing("ExportTables", ofNobody, "bob", alice.mark);
  expect((await exported(admins)).includes(bob.mark)).toBe(true);
});

it("no stream shows a viewer another developer, neither the history nor new events", async () => {
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const read: { readonly what: string; readonly said: string; text: () => string | Uint8Array }[] = [];
  const open = (method: DescMethod, request: Uint8Array, said: string, metadata: Record<string, string>) => {
    // The stream of a job begins with the job.
    const after = method.name !== "GetJobStream" && { "tapedeck-after": "start" };
    const call = grpc.open(pathOf(method), { ...head, ...bearing(hers), ...after, ...metadata });
    call.write(request);
    call.end();
    over.signal.addEventListener("abort", () => call.cancel());
    let details = "";
    void call.over.then((status) => {
      details = status.details;
    });
    const text = () => Buffer.concat([...call.messages, Buffer.from(details)]);
    read.push({ what: pathOf(method), said: `${said}${JSON.stringify(metadata)}`, text });
  };
  for (const method of streams) {
    for (const text of ["", "bob", bob.session, both.job]) open(method, filled(method.input, text, 0), text, {});
    for (const source of sources) open(method, new Uint8Array(), "", { "tapedeck-source": source });
    open(method, new Uint8Array(), "", { "tapedeck-source": "alice/shop", "tapedeck-session": bob.session });
  }

  const socket = new WebSocket(`ws://${harness.on.stack.http}/api/v1/ws`, { headers: bearing(hers) });
  cleanup.defer(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  const said = new Map<string, string>();
  socket.on("message", (data) => {
    const { id = "none" } = JSON.parse(String(data)) as { id?: string };
    said.set(id, (said.get(id) ?? "") + String(data));
  });
  const subscribe = (id: string, more: object) => {
    socket.send(JSON.stringify({ type: "subscribe", id, after: "start", original: true, ...more }));
    read.push({ what: `WebSocket ${id}`, said: JSON.stringify(more), text: () => said.get(id) ?? "" });
  };
  const fields = ["developers", "projects", "upstreams", "sources", "sessions", "kinds", "subjects", "outcomes"];
  const filters = fields.flatMap((field) =>
    ["bob", sources[0], bob.session].map((text) => ({ filter: { [field]: [text] } })),
  );
  const states = sources.map((source) => ({ state: true, after: last, filter: { sources: [source] } }));
  const more = [{}, ...filters, ...states, { filter: { kinds: ["build.*"] } }, { filter: { outcomes: ["failed"] } }];
  for (const [id, options] of more.entries()) subscribe(String(id), options);

  for (const path of ["/v1/events", "/v2/events", "/v2/applicationLogs", "/api/v1/stream?after=start"]) {
    for (const source of ["", ...sources]) {
      const url = `${path}${source === "" ? "" : `${path.includes("?") ? "&" : "?"}source=${source}`}`;
      const response = await fetch(`http://${harness.on.stack.http}${url}`, {
        headers: bearing(hers),
        signal: over.signal,
      });
      let text = "";
      const take = async () => {
        for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
      };
      take().catch(() => {});
      read.push({ what: url, said: url, text: () => text });
    }
  }

  await harness.on.write(bob.more());
  await harness.on.write(alice.more());
  const next = `${alice.mark}-more`;
  const live = [
    ...["/proto.SkaffoldService/Events", "/proto.v2.SkaffoldV2Service/Events", "tapedeck.v1.Tapedeck/Events"],
    ...["WebSocket 0", "/v1/events", "/v2/events", "/v2/applicationLogs", "/api/v1/stream?after=start"],
  ];
  for (const name of live) {
    const those = read.filter(({ what }) => what.endsWith(name));
    await until(() => those.some(({ text }) => holds(text(), next)), { message: `${name} to go on` });
  }
  // Once a late reader has everything, the earlier readers have received everything meant for them.
  subscribe("late", {});
  await until(() => holds(said.get("late") ?? "", next), { message: "a late reader to have all" });
  for (const { what, said: request, text } of read) expectNothing(what, text(), request);
  over.abort();
}, 600_000);
