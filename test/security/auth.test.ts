import { rktSession } from "@tapedeck/query/testing/rkt-scenario";
import { scenario } from "@tapedeck/query/testing/scenario";
import { vagrantSession } from "@tapedeck/query/testing/vagrant-scenario";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { skaffoldRefusal } from "../stack/error-info.ts";
import { httpCall } from "../stack/http-call.ts";
import { type RawClient, rawClient, reasonOf } from "../stack/raw-call.ts";
import { bearing, startTokenStack, type TestToken, type TokenStack } from "../stack/token-stack.ts";
import { transports } from "../transports/all-transports.ts";

const dashboard = "https://dash.example.com";
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let grpc: RawClient;
let viewer: TestToken;
let recorder: TestToken;

beforeAll(async () => {
  harness = cleanup.use(await startTokenStack({ TAPEDECK_GATEWAY_ORIGINS: dashboard }));
  grpc = cleanup.use(rawClient(harness.on.stack.grpc));
  [viewer, recorder] = await Promise.all([harness.token("acme", ["viewer"]), harness.token("acme", ["recorder"])]);
  const of = (upstream: string) =>
    scenario(sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream }));
  const [shop, host, machines] = [of("skaffold"), of("rkt"), of("vagrant")];
  const session = shop.session("01A");
  session.started();
  session.configured();
  session.build("web", "started");
  rktSession("01B", host).began();
  vagrantSession("01C", machines).began();
  await harness.on.seed([...shop.events, ...host.events, ...machines.events]);
});
afterAll(() => cleanup.disposeAsync());

const http = (path: string, headers: Record<string, string> = {}, method = "GET", body?: string) =>
  httpCall(harness.on.stack.http, method, path, headers, body);
const asksOfVagrant = { "client-api-protocol": "1,1" };

const described = [...registry].flatMap((type) =>
  type.kind === "service" ? type.methods.map(({ name }) => `/${type.typeName}/${name}`) : [],
);
/** Health says nothing of what is recorded, and balancers ask for it without a token. */
const isHealth = (path: string) => path.startsWith("/grpc.health.v1.Health/");
/** Every method that our protos describe, whether the gateway offers it or not, but for those of health. */
const methods = described.filter((path) => !isHealth(path));
const skaffoldControl = ["Execute", "AutoBuild", "AutoSync", "AutoDeploy", "Handle"];
const vagrantWrites = [
  ...["QueueJob", "CancelJob", "ValidateJob", "PruneOldJobs", "UpsertBasis", "UpsertProject", "UpsertTarget"],
  ...["DeleteTarget", "UpsertBox", "DeleteBox", "RunnerConfig", "RunnerJobStream"],
].map((name) => `/hashicorp.vagrant.Vagrant/${name}`);
const changes = [
  ...skaffoldControl.flatMap((name) => [`/proto.SkaffoldService/${name}`, `/proto.v2.SkaffoldV2Service/${name}`]),
  ...vagrantWrites,
];

async function codes(token?: string): Promise<Map<string, number>> {
  const answers = methods.map(async (path) => {
    return [path, await grpc.code(path, { ...asksOfVagrant, ...bearing(token) })] as const;
  });
  return new Map(await Promise.all(answers));
}

describe("gRPC", () => {
  const notHere = ["/tapedeck.v1.Query/", "/tapedeck.v1.Maintain/", "/hashicorp.vagrant.sdk", "/opentelemetry."];
  const isHere = (path: string) => !notHere.some((service) => path.startsWith(service));

  it("every method of every service needs a token", async () => {
    const answers = await codes();
    for (const path of methods) expect([path, answers.get(path)]).toEqual([path, isHere(path) ? 16 : 12]);
    expect(methods.length).toBeGreaterThan(40);
  });

  it("a viewer may read everything, change nothing, and push nothing", async () => {
    const answers = await codes(viewer.text);
    const forbidden = [...answers].flatMap(([path, code]) => (code === 7 ? [path] : []));
    expect(forbidden.sort()).toEqual([...changes, "/tapedeck.v1.Recorder/Push"].sort());
    expect([...answers].filter(([, code]) => code === 16)).toEqual([]);
  });

  it("a recorder may push and do nothing else", async () => {
    const answers = await codes(recorder.text);
    for (const path of methods.filter(isHere)) {
      expect([path, answers.get(path) === 7]).toEqual([path, path !== "/tapedeck.v1.Recorder/Push"]);
    }
  });

  it("a controller may call what changes an upstream; an admin may do everything", async () => {
    const controller = await codes((await harness.token("acme", ["controller"])).text);
    expect([...controller].flatMap(([path, code]) => (code === 7 ? [path] : []))).toEqual([
      "/tapedeck.v1.Recorder/Push",
    ]);
    const admin = await codes((await harness.token("acme", ["admin"])).text);
    expect([...admin].filter(([, code]) => code === 7 || code === 16)).toEqual([]);
  });

  it.each([
    ["no token", {}, /a token is needed.*`tapedeck login` or TAPEDECK_TOKEN/],
    ["another scheme", { authorization: "Basic YWxpY2U6c2VjcmV0" }, /is not "Bearer <token>"/],
    ["nothing behind it", { authorization: "Bearer" }, /is not "Bearer <token>"/],
    ["something else", bearing("eyJhbGciOi.eyJzdWIi.c2ln"), /not a Tapedeck token/],
    ["a token that there is not", bearing(`tdk_${"A".repeat(43)}`), /token is unknown/],
    ["another case", bearing("TDK_"), /not a Tapedeck token/],
  ])("%s: the refusal names the problem", async (_, metadata, words) => {
    const refusal = await grpc.ask("/proto.SkaffoldService/GetState", metadata);
    expect(refusal).toMatchObject({ code: 16, details: expect.stringMatching(words) });
    expect(reasonOf(refusal)).toBe("unauthenticated");
  });

  it("the authorization scheme is case-insensitive", async () => {
    const metadata = { authorization: `bearer ${viewer.text}` };
    expect(await grpc.code("/proto.SkaffoldService/GetState", metadata)).toBe(0);
  });

  it("health and reflection need no token", async () => {
    expect(await grpc.code("/grpc.health.v1.Health/Check")).toBe(0);
    const listServices = Buffer.from([0x3a, 0x01, 0x2a]);
    const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    expect(Buffer.isBuffer(await grpc.ask(reflection, {}, listServices))).toBe(true);
  });
});

describe("HTTP", () => {
  const ours = ["sources", "sessions", "operations", "state?source=alice/shop/skaffold", "events", "stats/builds"];
  const reads = ["/v1/state", "/v2/state", ...ours.map((path) => `/api/v1/${path}`), "/metrics"];
  const streams = ["/v1/events", "/v1/event_log", "/v2/events", "/v2/applicationLogs", "/api/v1/stream", "/api/v1/ws"];
  const controls: [string, string][] = ["v1", "v2"].flatMap((api): [string, string][] => [
    ["POST", `/${api}/execute`],
    ["POST", `/${api}/events/handle`],
    ...["build", "sync", "deploy"].map((what): [string, string] => ["PUT", `/${api}/${what}/auto_execute`]),
  ]);

  it("every path needs a token, unknown paths too", async () => {
    const elsewhere = ["/", "/nothing", "/api", "/api/v1/nothing", "/api/v2/sources", "//api/v1/sources", "/V1/state"];
    for (const path of [...reads, ...streams, ...elsewhere.slice(1)]) {
      const { status, headers } = await http(path);
      expect([path, status, headers["www-authenticate"]]).toEqual([path, 401, "Bearer"]);
    }
    for (const [method, path] of [...controls, ["POST", "/api/v1/sources"], ["DELETE", "/v1/state"]] as const) {
      expect([path, (await http(path, {}, method)).status]).toEqual([path, 401]);
    }
  });

  it("health and the page need no token", async () => {
    for (const path of ["/healthz", "/readyz", "/"]) {
      expect([path, (await http(path, { accept: "text/html" })).status]).toEqual([path, 200]);
    }
  });

  it("a viewer may read and change nothing", async () => {
    for (const path of reads) expect([path, (await http(path, bearing(viewer.text))).status]).toEqual([path, 200]);
    for (const [method, path] of controls) {
      // The gateway does not read the body of a refused call.
      for (const sent of ["{}", "[not JSON"]) {
        const { status, body } = await http(path, bearing(viewer.text), method, sent);
        expect([path, status, JSON.parse(body).code]).toEqual([path, 403, 7]);
      }
    }
    const { body } = await http("/metrics", bearing(viewer.text));
    const refused = /^tapedeck_gateway_control_refused_total\{[^}]*code="forbidden"[^}]*\} (\d+)$/m.exec(body)?.[1];
    expect(Number(refused)).toBeGreaterThanOrEqual(controls.length);
  });

  it("a recorder may not read; a controller's call reaches the upstream", async () => {
    for (const path of [...reads, ...streams]) {
      expect([path, (await http(path, bearing(recorder.text))).status]).toEqual([path, 403]);
    }
    const controller = await harness.token("acme", ["controller"]);
    const { status } = await http("/v1/execute", bearing(controller.text), "POST", '{"build":true}');
    expect(status).toBe(503);
  });

  it("a token in the URL or in a cookie does not count", async () => {
    for (const name of ["token", "access_token", "authorization"]) {
      expect((await http(`/v1/state?${name}=${viewer.text}`)).status).toBe(401);
    }
    expect((await http("/v1/state", { cookie: `authorization=Bearer ${viewer.text}` })).status).toBe(401);
  });

  it("a refusal has the path's error format", async () => {
    expect(JSON.parse((await http("/api/v1/sources")).body)).toEqual({
      error: { code: "unauthenticated", message: expect.stringContaining("a token is needed") },
    });
    const refusal = skaffoldRefusal(await http("/v1/state"));
    expect(refusal).toMatchObject({ code: 16, info: { reason: "unauthenticated", domain: "tapedeck" } });
    const forbidden = JSON.parse((await http("/api/v1/sources", bearing(recorder.text))).body);
    expect(forbidden.error).toEqual({ code: "forbidden", message: expect.stringContaining("role viewer") });
  });

  it("an allowed page may send a token and read a refusal; its preflight request needs no token", async () => {
    const asks = { origin: dashboard, "access-control-request-method": "DELETE" };
    const preflight = await http("/api/v1/tokens/1", asks, "OPTIONS");
    expect(preflight.status).toBe(204);
    expect(preflight.headers["access-control-allow-headers"]).toContain("authorization");
    expect(preflight.headers["access-control-allow-methods"]).toContain("DELETE");
    for (const [token, status] of [
      [undefined, 401],
      [recorder.text, 403],
      [viewer.text, 200],
    ] as const) {
      const answer = await http("/api/v1/sources", { origin: dashboard, ...bearing(token) });
      expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([status, dashboard]);
    }
    const evil = await http("/api/v1/sources", { origin: "https://evil.example", ...bearing(viewer.text) });
    expect(evil.status).toBe(403);
  });
});

describe("a WebSocket", () => {
  const open = (protocols: readonly string[], headers: Record<string, string> = {}) => {
    const socket = new WebSocket(`ws://${harness.on.stack.http}/api/v1/ws`, [...protocols], { headers });
    cleanup.defer(() => socket.terminate());
    return new Promise<string | number>((resolve) => {
      socket.once("open", () => resolve(socket.protocol));
      socket.once("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
      socket.once("error", () => {});
    });
  };
  const json = "tapedeck.v1.json";
  const unknown = `tdk_${"A".repeat(43)}`;

  it("takes the token as a header, or as a subprotocol that it does not answer with", async () => {
    expect(await open([json], bearing(viewer.text))).toBe(json);
    expect(await open([json, `tapedeck.bearer.${viewer.text}`])).toBe(json);
    expect(await open([`tapedeck.bearer.${viewer.text}`, json])).toBe(json);
  });

  it("does not open without a token", async () => {
    expect(await open([json])).toBe(401);
    expect(await open([json, `tapedeck.bearer.${unknown}`])).toBe(401);
    expect(await open([json, `tapedeck.bearer.${viewer.text}`], bearing(unknown))).toBe(401);
    expect(await open([json, `tapedeck.bearer.${recorder.text}`])).toBe(403);
    const page = { ...bearing(viewer.text), origin: "https://evil.example" };
    expect(await open([json], page)).toBe(403);
  });
});

it("the page learns that a token is needed, and readiness gives no reasons", async () => {
  expect((await http("/", { accept: "text/html" })).body).toContain('<div id="page">');
  const about = JSON.parse((await http("/about")).body);
  expect([about.auth, about.token]).toEqual(["tokens", undefined]);
  expect(JSON.parse((await http("/readyz")).body)).toEqual({
    ready: true,
    checks: { log: "ok", recording: "ok", query: "ok" },
  });
});

describe("open streams", () => {
  it("end with the token, on every transport", async () => {
    const token = await harness.token("acme", ["viewer", "recorder"]);
    const other = await harness.token("acme", ["viewer"]);
    const endpoint = { grpc: harness.on.stack.grpc, http: harness.on.stack.http, token: token.text };
    const left = new AbortController();
    cleanup.defer(() => left.abort());
    const ends: Record<string, Promise<unknown>> = {};
    const begun: Promise<unknown>[] = [];

    for (const transport of transports) {
      const reader = transport.read(endpoint, { after: "start" }, left.signal);
      begun.push(reader.next());
      ends[transport.name] = (async () => {
        for await (const _ of reader);
      })().catch((error: { body?: { code: string } }) => error.body?.code ?? error);
    }
    for (const path of [
      "/proto.SkaffoldService/Events",
      "/proto.v2.SkaffoldV2Service/ApplicationLogs",
      "/v1alpha.PublicAPI/ListenEvents",
      "/tapedeck.v1.Recorder/Push",
    ]) {
      const call = grpc.open(path, bearing(token.text));
      if (!path.endsWith("/Push")) {
        call.write(Buffer.alloc(0));
        call.end();
        begun.push(call.begun);
      }
      ends[path] = call.over.then((status) => status.code === 16 && reasonOf(status));
    }
    const lines = fetch(`http://${harness.on.stack.http}/v1/events`, { headers: bearing(token.text) });
    begun.push(lines);
    ends["/v1/events"] = lines.then(async (response) => {
      const last = (await response.text()).trim().split("\n").at(-1) ?? "";
      return JSON.parse(last).error.code === 16 && "unauthenticated";
    });
    const socket = new WebSocket(`ws://${harness.on.stack.http}/api/v1/ws`, { headers: bearing(token.text) });
    begun.push(new Promise((resolve) => socket.once("open", resolve)));
    ends["an idle WebSocket"] = new Promise((resolve) => {
      socket.once("close", (code) => resolve(code === 4401 && "unauthenticated"));
    });
    const kept = transports[0]?.read({ ...endpoint, token: other.text }, { after: "start" }, left.signal);
    begun.push(kept?.next() ?? Promise.resolve());

    await Promise.all(begun);
    await token.revoke();
    for (const [name, end] of Object.entries(ends)) expect([name, await end]).toEqual([name, "unauthenticated"]);
    for await (const { type } of kept ?? []) if (type === "caught_up") break;
  });

  it("end when the token expires", async () => {
    const said: string[] = [];
    /** Undefined if the token expired before the socket was open. */
    const closed = async (lifetimeMs: number) => {
      const token = await harness.token("acme", ["viewer"], lifetimeMs);
      const socket = new WebSocket(`ws://${harness.on.stack.http}/api/v1/ws`, { headers: bearing(token.text) });
      let isOpen = false;
      socket.once("open", () => {
        isOpen = true;
      });
      socket.on("message", (data) => said.push(String(data)));
      socket.once("error", () => {});
      const code = await new Promise((resolve) => socket.once("close", resolve));
      return isOpen ? code : undefined;
    };
    expect((await closed(2_500)) ?? (await closed(25_000))).toBe(4401);
    expect(JSON.parse(said.at(-1) ?? "")).toMatchObject({
      type: "error",
      error: { code: "unauthenticated", message: "the token has expired" },
    });
  });
});

it("while NATS is away, known tokens are accepted and others are not", async () => {
  expect((await http("/api/v1/sources", bearing(viewer.text))).status).toBe(200);
  const unknown = bearing(`tdk_${"B".repeat(43)}`);
  await harness.on.stack.parts.nats.kill();
  await until(async () => (await http("/api/v1/sources", unknown)).status === 503, { message: "it to be noticed" });
  const refusal = await http("/api/v1/sources", unknown);
  expect([refusal.headers["retry-after"], JSON.parse(refusal.body).error.code]).toEqual(["1", "not_ready"]);
  expect(await grpc.ask("/proto.SkaffoldService/GetState", unknown)).toMatchObject({ code: 14 });
  expect((await http("/api/v1/sources", bearing(viewer.text))).status).toBe(200);
  expect((await http("/api/v1/sources", bearing(recorder.text))).status).toBe(403);
  expect((await http("/api/v1/sources")).status).toBe(401);
  const away = { ready: false, checks: { log: "away" } };
  expect(JSON.parse((await http("/readyz")).body)).toMatchObject(away);
});
