import type { DescMethod } from "@bufbuild/protobuf";
import { GetLogsRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { ulid } from "ulid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { statsPaths } from "../stack/answer-schemas.ts";
import { httpCall } from "../stack/http-call.ts";
import { type RawClient, rawClient, reasonOf } from "../stack/raw-call.ts";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import {
  both,
  filled,
  holds,
  only,
  rktSessionOf,
  vagrantSessionOf,
  workspaceScenario,
} from "../stack/two-workspaces.ts";

// Two workspaces have the same recordings. A token of one requests the contents of the other, by every method and path,
// in every field that can hold a text.

const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let grpc: RawClient;
/** Tokens of globex with every role, and one of acme that proves that data exists. */
let hers: string;
let theirs: string;
/** Positions in the middle and at the end of acme's events, and the token of a list's next page there. */
let middle: string;
let last: string;
let page: string;

beforeAll(async () => {
  harness = cleanup.use(
    await startTokenStack({
      TAPEDECK_LIMITS_CONNECTIONS: "10000",
      TAPEDECK_ENDPOINTS: JSON.stringify([{ source: sources[0], grpc: "127.0.0.1:0", http: "127.0.0.1:0" }]),
    }),
  );
  grpc = cleanup.use(rawClient(harness.on.stack.grpc));
  const seqs = [...(await harness.on.seed(globex.events)), ...(await harness.on.seed(acme.events))];
  [middle = "", last = ""] = [seqs[Math.floor(seqs.length * 0.75)], seqs.at(-1)].map((seq) => harness.on.at(seq ?? 0));
  hers = (await harness.token("globex", ["admin"])).text;
  theirs = (await harness.token("acme", ["admin"])).text;
  page = JSON.parse((await http("/api/v1/operations?limit=1", theirs)).body).nextPage;
});
afterAll(() => cleanup.disposeAsync());

const http = (path: string, token: string, more: Record<string, string> = {}) =>
  httpCall(harness.on.stack.http, "GET", path, { ...bearing(token), ...more });

const sources = ["skaffold", "rkt", "vagrant"].map((upstream) => `acme/alice/shop/${upstream}`);
const sessions = [acme.session, rktSessionOf(acme.session), vagrantSessionOf(acme.session)];
/** The texts that might lead into the other workspace. */
const names = () => [
  ...[...sources, acme.session, "alice/shop", "*", ">", "' or workspace = 'acme", page, last],
  ...[both.job, both.resource, only.acme.pod, only.acme.job],
];

/** Fails if bytes contain data of the other workspace, or its name, unless the request named it. */
function expectNothing(what: string, answer: Uint8Array | string, said = ""): void {
  const found = holds(answer, acme.mark) || (!said.includes("acme") && Buffer.from(answer).includes("acme/"));
  expect(found ? `${what} ${said}: ${Buffer.from(answer).toString("latin1")}` : "").toBe("");
}

const services = [...registry].flatMap((type) => (type.kind === "service" ? [type] : []));
/** Methods between Tapedeck's own services. */
const inner = ["tapedeck.v1.Query", "tapedeck.v1.Maintain"];
const served = services.filter(({ typeName }) => !inner.includes(typeName) && !typeName.includes(".sdk."));
const isUnary = ({ methodKind }: DescMethod) => methodKind === "unary";
const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`;
const unary = served.flatMap(({ methods }) => methods.filter(isUnary));
const streams = served.flatMap(({ methods }) => methods.filter(({ methodKind }) => methodKind === "server_streaming"));
const head = { "client-api-protocol": "1,1" };

describe("gRPC", () => {
  function askAll(token: string, metadata: Record<string, string>, text: string, at = grpc) {
    const those = text === "" ? unary : unary.filter(({ input }) => input.members.length > 0);
    const answers = those.map(async (method) => {
      const call = at.open(pathOf(method), { ...head, ...bearing(token), ...metadata });
      call.write(filled(method.input, text, 0));
      call.end();
      const { code, details } = await call.over;
      return { method: pathOf(method), code, response: Buffer.concat([...call.messages, Buffer.from(details)]) };
    });
    return Promise.all(answers);
  }

  it("no request reveals anything of another workspace, whatever it contains", async () => {
    for (const text of names()) {
      for (const { method, response } of await askAll(hers, {}, text)) expectNothing(method, response, text);
    }
  });

  it("no metadata reveals anything of another workspace", async () => {
    const beside = [
      ...sources.map((source, at) => ({ "tapedeck-source": source, "tapedeck-session": sessions[at] ?? "" })),
      ...sources.map((source, at) => ({ "tapedeck-source": source.slice(5), "tapedeck-session": sessions[at] ?? "" })),
      { "tapedeck-workspace": "acme", "tapedeck-key": "test-key", "tapedeck-developer": "acme/alice" },
      { "tapedeck-source": "*/alice/shop/skaffold", "tapedeck-at": middle },
      { "tapedeck-source": "ACME/Alice/Shop/rkt", "tapedeck-at": last, "tapedeck-min-position": last },
    ];
    for (const metadata of beside) {
      for (const { method, response } of await askAll(hers, metadata, "")) {
        expectNothing(`${method} ${JSON.stringify(metadata)}`, response, "acme");
      }
    }
  });

  it("no listener that is bound to a source there reveals anything", async () => {
    const at = cleanup.use(rawClient(harness.on.stack.parts.gateway.addresses[`${sources[0]} grpc`] ?? ""));
    for (const { method, response } of await askAll(hers, {}, "", at)) expectNothing(method, response, "acme");
    const isSeen = async () => (await askAll(theirs, {}, "", at)).some(({ response }) => holds(response, acme.mark));
    await until(isSeen, { message: "something to be seen" });
  });

  it("the other workspace's own token does see its data", async () => {
    const texts = ["", acme.mark, both.resource, only.acme.pod, only.acme.job, only.acme.image, only.acme.box];
    const seen = new Set<string | undefined>();
    // Some of so many simultaneous calls may be answered with "try again".
    const areSeen = async () => {
      for (const { method, code, response } of (
        await Promise.all(texts.map((text) => askAll(theirs, {}, text)))
      ).flat())
        if (code === 0 && holds(response, acme.mark)) seen.add(method.split("/")[2]);
      expect([...seen]).toEqual(
        expect.arrayContaining([
          ...["GetState", "ListSources", "ListSessions", "ListOperations"],
          ...["GetInfo", "ListPods", "InspectPod", "ListImages", "InspectImage"],
          ...["GetVersionInfo", "GetBasis", "ListBasis", "GetProject", "ListProjects", "GetTarget", "ListTargets"],
          ...["GetBox", "FindBox", "GetRunner", "GetJob", "_ListJobs"],
        ]),
      );
      return true;
    };
    await until(areSeen, { message: "all of it to be seen" });
  });
});

describe("HTTP", () => {
  const lists = ["sources", "sessions", "operations", "search", "events", "state", "stats/builds", "compare"];
  const parameters = [
    ...["developer", "project", "upstream", "source", "session", "subject", "label", "artifact"],
    ...["after", "until", "at", "page", "group", "left", "right", "q", "reason"],
  ];

  it("no parameter opens another workspace", async () => {
    const texts = [
      sources[0],
      sessions[1],
      "acme",
      "*",
      "%",
      `branch=${acme.mark}`,
      acme.mark,
      only.acme.job,
      page,
      last,
    ];
    for (const path of lists) {
      const answers = parameters.flatMap((name) =>
        texts.map(async (text = "") => {
          const url = `/api/v1/${path}?${new URLSearchParams({ [name]: text })}`;
          const { status, body } = await http(url, hers);
          // A refusal repeats the mark of the request.
          if (status === 200 || !text.includes("hush")) expectNothing(url, body, text);
        }),
      );
      await Promise.all(answers);
    }
  });

  it.each(statsPaths)("%s counts nothing of another workspace", async (path) => {
    expectNothing(path, (await http(`${path}?group=source`, hers)).body);
    expect((await http(`${path}?group=source`, theirs)).body).toContain("acme/");
  });

  it("no combination of parameters and no header opens another workspace", async () => {
    const urls = [
      ...sources.map((source) => `/api/v1/events?source=${source}&original=true&last=1000`),
      ...sources.map((source, at) => `/api/v1/state?source=${source}&session=${sessions[at]}`),
      ...sources.map((source, at) => `/api/v1/state?source=${source.slice(5)}&session=${sessions[at]}`),
      ...[sources[0], acme.session, `${acme.session}.1.1`, `alice/shop/skaffold@${last}`].flatMap((side) => [
        `/api/v1/compare?left=${side}`,
        `/api/v1/compare?left=alice/shop/skaffold&right=${side}`,
      ]),
      `/api/v1/operations?page=${page}&limit=1000`,
      `/api/v1/sessions?page=${page}&at=${last}`,
      `/api/v1/search?q=${acme.mark}`,
      `/api/v1/search?q=alice&source=${sources[0]}&session=${acme.session}&artifact=${acme.mark}`,
      `/api/v1/stats/builds?group=source,developer,artifact,day&artifact=${acme.mark}`,
      `/api/v1/stats/flakes?group=source,artifact,loop,time&artifact=${acme.mark}`,
      "/api/v1/stats/loops?group=source,loop,time",
      "/api/v1/status",
      `/api/v1/events?after=${middle}&until=${last}&original=true`,
      `/v1/state?source=${sources[0]}&session=${acme.session}&at=${last}`,
      `/v2/state?source=alice/shop&session=${acme.session}`,
    ];
    for (const path of urls) {
      for (const accept of ["application/json", "application/x-ndjson", "application/cloudevents-batch+json"]) {
        const more = { accept, "tapedeck-workspace": "acme", "tapedeck-source": sources[0] ?? "" };
        expectNothing(path, (await http(path, hers, more)).body, "acme");
      }
    }
    // The total volume of all workspaces is not shown to one of them.
    expect(JSON.parse((await http("/api/v1/status", hers)).body)).toMatchObject({ log: null });
    const paths = [
      "sources",
      "sessions",
      "operations",
      "search?limit=1000",
      "events?last=1000",
      "stats/builds?group=artifact",
      "stats/flakes?group=artifact",
    ];
    for (const path of [...paths, "state?source=alice/shop/rkt", "compare?left=alice/shop/skaffold"]) {
      expect([path, holds((await http(`/api/v1/${path}`, theirs)).body, acme.mark)]).toEqual([path, true]);
      expect([path, holds((await http(`/api/v1/${path}`, hers)).body, globex.mark)]).toEqual([path, true]);
    }
  });
});

/** Streams of every kind, from the beginning; then both workspaces continue, the other one first. */
it("no stream reveals another workspace, neither its history nor its new events", async () => {
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const read: { readonly what: string; readonly said: string; text: () => string | Uint8Array }[] = [];

  const open = (
    method: DescMethod | undefined,
    request: Uint8Array,
    said: string,
    metadata: Record<string, string>,
  ) => {
    const what = method === undefined ? "" : pathOf(method);
    const call = grpc.open(what, {
      ...head,
      ...bearing(hers),
      // The stream of a job begins with the job.
      ...(method?.name !== "GetJobStream" && { "tapedeck-after": "start" }),
      ...metadata,
    });
    call.write(request);
    call.end();
    over.signal.addEventListener("abort", () => call.cancel());
    const named = `${said}${JSON.stringify(metadata)}`;
    let details = "";
    read.push({ what, said: named, text: () => Buffer.concat([...call.messages, Buffer.from(details)]) });
    void call.over.then((status) => {
      details = status.details;
    });
  };
  for (const method of streams) {
    for (const text of [...sources, "*", ">", both.pod, both.job, both.resource, only.acme.job]) {
      open(method, filled(method.input, text, 0), text, {});
    }
    const none = new Uint8Array();
    for (const source of sources) open(method, none, "", { "tapedeck-source": source });
    open(method, none, "", { "tapedeck-workspace": "acme" });
    open(method, none, "", { "tapedeck-source": "alice/shop", "tapedeck-session": acme.session });
  }
  const logs = GetLogsRequest.fromPartial({ pod_id: both.pod, follow: true });
  open(registry.getService("v1alpha.PublicAPI")?.method.getLogs, GetLogsRequest.encode(logs).finish(), "", {});

  const socket = new WebSocket(`ws://${harness.on.stack.http}/api/v1/ws`, { headers: bearing(hers) });
  cleanup.defer(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  const said = new Map<string, string>();
  socket.on("message", (data) => {
    const { id = "none" } = JSON.parse(String(data)) as { id?: string };
    said.set(id, (said.get(id) ?? "") + String(data));
  });
  read.push({ what: "WebSocket", said: "acme", text: () => said.get("none") ?? "" });
  const subscribe = (id: string, more: object) => {
    socket.send(JSON.stringify({ type: "subscribe", id, after: "start", original: true, ...more }));
    read.push({ what: `WebSocket ${id}`, said: JSON.stringify(more), text: () => said.get(id) ?? "" });
  };
  const texts = ["*", ">", "acme", "acme/alice/shop/rkt", "*/alice/shop/rkt", acme.session, "alice"];
  const filters = ["developers", "sources", "sessions", "subjects"].flatMap((field) =>
    texts.map((text) => ({ filter: { [field]: [text] } })),
  );
  const states = sources.flatMap((source, at) => [
    { state: true, after: last, filter: { sources: [source] } },
    { state: true, after: last, filter: { sources: [source.slice(5)], sessions: [sessions[at]] } },
  ]);
  for (const [id, more] of [{}, ...filters, ...states, { workspace: "acme" }, { after: last }].entries())
    subscribe(String(id), more);

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

  await harness.on.write(acme.more());
  await harness.on.write(globex.more());
  const next = `${globex.mark}-more`;
  const live = [
    ...["/proto.SkaffoldService/Events", "/proto.v2.SkaffoldV2Service/Events", "ApplicationLogs", "ListenEvents"],
    ...["GetLogs", "GetLogStream", "tapedeck.v1.Tapedeck/Events", "WebSocket 0"],
    ...["/v1/events", "/v2/events", "/v2/applicationLogs", "/api/v1/stream?after=start"],
  ];
  for (const name of live) {
    const those = read.filter(({ what }) => what.endsWith(name));
    await until(() => those.some(({ text }) => holds(text(), next)), { message: `${name} to go on` });
  }
  const jobs = read.filter(({ what }) => what.endsWith("GetJobStream"));
  await until(() => jobs.some(({ text }) => holds(text(), globex.mark)), { message: "a job's stream to begin" });
  // Once a late reader has everything, the earlier readers have received everything meant for them.
  subscribe("late", {});
  await until(() => holds(said.get("late") ?? "", next), { message: "a late reader to have all" });
  for (const { what, said, text } of read) expectNothing(what, text(), said);
  over.abort();
});

it("no control call reaches a source of another workspace", async () => {
  const nats = cleanup.adopt(await connect({ servers: harness.on.stack.parts.nats.url }), (nc) => nc.close());
  const reached: string[] = [];
  nats.subscribe("tapedeck.control.>", {
    callback: (_, message) => {
      reached.push(message.subject.split(".")[2] ?? "");
      message.respond("");
    },
  });
  await nats.flush();
  const call = async (token: string, source: string) => {
    const metadata = { ...head, ...bearing(token), "tapedeck-source": source };
    return Promise.all(unary.map((method) => grpc.ask(pathOf(method), metadata)));
  };
  for (const source of [...sources, "acme/alice/shop", "*/alice/shop/vagrant"]) {
    for (const answer of await call(hers, source)) {
      if (Buffer.isBuffer(answer)) expectNothing(source, answer);
      else expect(["unknown_source", "invalid_argument", undefined]).toContain(reasonOf(answer));
    }
  }
  expect(new Set(reached)).toEqual(new Set([]));
  await call(theirs, sources[2] ?? "");
  expect(new Set(reached)).toEqual(new Set(["acme"]));
});

describe("pushed events", () => {
  const hello = { developer: "bob", project: "site", upstream: "skaffold", tap: acme.session, first_index: 1n };
  async function push(more: object, metadata: Record<string, string> = {}) {
    const token = (await harness.token("globex", ["recorder"])).text;
    const call = grpc.open("/tapedeck.v1.Recorder/Push", { ...bearing(token), ...metadata });
    const body = { $case: "hello" as const, value: { ...hello, ...more } };
    call.write(PushRequest.encode(PushRequest.fromPartial({ body })).finish());
    const answer = await call.answer;
    call.cancel();
    if (!Buffer.isBuffer(answer)) return answer.details;
    const response = PushResponse.decode(answer).body;
    return response?.$case === "welcome" ? response.value.source : "";
  }

  it.each([
    ["as it says", {}, {}],
    ["by names with parts", { developer: "acme/alice", project: "../../acme/alice/shop" }, {}],
    ["by names with wildcards", { developer: "*", project: ">" }, {}],
    ["by metadata", {}, { "tapedeck-workspace": "acme", "tapedeck-developer": "mallory", "tapedeck-key": "test-key" }],
    ["by a source in full", {}, { "tapedeck-source": "acme/alice/shop/skaffold" }],
  ])("go to their token's own workspace and developer: %s", async (_, more, metadata) => {
    expect(await push(more, metadata)).toMatch(/^globex\/alice\/[a-z0-9_-]+\/skaffold$/);
  });

  it("of a session in another workspace get no hint that it exists", async () => {
    const pushed = (session: string) => push({ imported: { session, source: sources[0] ?? "", missing: {} } });
    const response = await pushed(acme.session);
    expectNothing("the import", response);
    expect(response).toBe(await pushed(ulid()));
    const events = await harness.on.stack.httpCall("GET", "/api/v1/events?last=1000", bearing(theirs));
    expect(holds(events.body, "globex")).toBe(false);
  });
});

describe("tokens", () => {
  it("are listed and revoked in their own workspace only", async () => {
    const other = await harness.token("acme", ["viewer"]);
    const { body } = await http("/api/v1/tokens", hers);
    expect(JSON.parse(body).items.map(({ workspace }: { workspace: string }) => workspace)).not.toContain("acme");
    expectNothing("tokens", body);
    const ask = (method: string, path: string, wish?: object) =>
      httpCall(harness.on.stack.http, method, path, bearing(hers), wish && JSON.stringify(wish));
    expect((await ask("DELETE", `/api/v1/tokens/${other.record.id}`)).status).toBe(404);
    expect((await http("/api/v1/sources", other.text)).status).toBe(200);
    const wish = { name: "x", roles: ["viewer"] };
    expect((await ask("POST", "/api/v1/tokens", { ...wish, workspace: "acme" })).status).toBe(400);
    const made = await ask("POST", "/api/v1/tokens", wish);
    expect([made.status, JSON.parse(made.body).workspace]).toEqual([201, "globex"]);
  });
});
