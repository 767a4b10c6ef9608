import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import { skaffoldMethods } from "@tapedeck/gateway/apis/skaffold/methods";
import { readConfig } from "@tapedeck/gateway/config";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { Client as Postgres } from "pg";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { WebSocket } from "ws";
import { type SkaffoldClient, skaffoldClient } from "../skaffold/client.ts";
import { infoOf, skaffoldRefusal } from "../stack/error-info.ts";
import { httpCall } from "../stack/http-call.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

const sourceOf = (developer: string) =>
  sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });
const getState = "/proto.SkaffoldService/GetState";
const dashboard = "https://dash.example.com";

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
/** Addresses by the name of the listener. */
let addresses: Readonly<Record<string, string>>;

beforeAll(async () => {
  on = cleanup.use(
    await startSeededStack({
      TAPEDECK_ENDPOINTS: JSON.stringify([
        { source: "alice/shop", grpc: "127.0.0.1:0", http: "127.0.0.1:0" },
        { source: "bob/shop/skaffold", grpc: "127.0.0.1:0" },
        { source: "erin/shop", grpc: "127.0.0.1:0", http: "127.0.0.1:0" },
        { source: "frank/shop", http: "127.0.0.1:0" },
      ]),
      TAPEDECK_GATEWAY_ORIGINS: dashboard,
      TAPEDECK_GATEWAY_HOSTS: "team.example.com",
    }),
  );
  addresses = on.stack.parts.gateway.addresses;
  for (const developer of ["alice", "bob"]) {
    const script = scenario(sourceOf(developer));
    const session = script.session(`01${developer}`);
    session.started();
    session.configured();
    session.build(developer, "started");
    await on.seed(script.events);
  }
});
afterAll(() => cleanup.disposeAsync());

const grpc = (name = "grpc"): SkaffoldClient => cleanup.use(skaffoldClient(addresses[name] ?? ""));
const http = (path: string, headers: Record<string, string> = {}, method = "GET", at = "http") =>
  httpCall(addresses[at] ?? "", method, path, headers);

describe("listeners bound to a source", () => {
  it.each([
    ["alice/shop grpc", "01alice"],
    ["bob/shop/skaffold grpc", "01bob"],
  ])("%s answers for its source without naming it", async (name, session) => {
    const answer = await grpc(name).unary(getState);
    expect(answer.metadata.get("tapedeck-session")).toEqual([session]);
    expect(await grpc(name).take("/proto.SkaffoldService/Events", 2)).toHaveLength(2);
  });

  it("an HTTP listener answers for its source without naming it", async () => {
    const { headers } = await http("/v1/state", {}, "GET", "alice/shop http");
    expect(headers["tapedeck-session"]).toBe("01alice");
  });

  it.each([["alice/shop"], ["alice/shop/skaffold"], ["acme/alice/shop/skaffold"]])(
    "the source may be named as %s",
    async (source) => {
      expect(
        await grpc("alice/shop grpc").unary(getState, Buffer.alloc(0), { "tapedeck-source": source }),
      ).toMatchObject({
        code: 0,
      });
    },
  );

  it("another source is refused", async () => {
    const refusal = await grpc("alice/shop grpc").unary(getState, Buffer.alloc(0), { "tapedeck-source": "bob/shop" });
    expect(refusal).toMatchObject({ code: 3, message: expect.stringContaining("serves alice/shop only") });
    expect(infoOf(refusal)).toMatchObject({ reason: "invalid_argument", metadata: { field: "source" } });
    const overHttp = await http("/v1/events?source=bob/shop", {}, "GET", "alice/shop http");
    expect(skaffoldRefusal(overHttp)).toMatchObject({ code: 3, info: infoOf(refusal) });
  });

  it("a source of another workspace is another source, whatever the rest of its name", async () => {
    const request = { "tapedeck-source": "globex/alice/shop/skaffold" };
    expect(await grpc("alice/shop grpc").unary(getState, Buffer.alloc(0), request)).toMatchObject({ code: 3 });
  });

  it("offer only Skaffold's API with health and reflection", async () => {
    for (const path of ["/api/v1/sources", "/metrics", "/readyz", "/"]) {
      expect(await http(path, { accept: "text/html" }, "GET", "alice/shop http")).toMatchObject({ status: 404 });
    }
    for (const name of ["tapedeck.v1.Recorder", "tapedeck.v1.Tapedeck"]) {
      expect(await services("alice/shop grpc")).not.toContain(name);
    }
    const isServing = async () => (await health("proto.SkaffoldService", "alice/shop grpc")) === 1;
    await until(isServing, { message: "SERVING" });
  });
});

describe("an endpoint whose source has not been recorded yet", () => {
  const [overGrpc, overHttp] = ["erin/shop grpc", "erin/shop http"];

  it("answers with an empty state, as a Skaffold that has just started", async () => {
    const position = [on.endAt(0)];
    const answer = await grpc(overGrpc).unary(getState);
    expect(answer).toMatchObject({ code: 0, bytes: Buffer.alloc(0) });
    expect(answer.metadata.get("tapedeck-position")).toEqual(position);
    for (const path of ["/v1/state", "/v2/state"]) {
      const { status, body } = await http(path, {}, "GET", overHttp);
      expect({ status, buildState: JSON.parse(body).buildState }).toEqual({ status: 200, buildState: null });
    }
  });

  it.each(["/v1/state?at=2026-01-31T12:00:00Z", "/v1/state?session=01erin", "/v1/events?session=01erin"])(
    "refuses what names a time or a session: %s",
    async (path) => {
      expect(await http(path, {}, "GET", overHttp)).toMatchObject({ status: 404 });
    },
  );

  it("is reported by /readyz and doctor, in case its name is wrong", async () => {
    const warningsNow = async (): Promise<string[]> => JSON.parse((await http("/readyz")).body).details?.warnings ?? [];
    // Those that were recorded meanwhile are named for some seconds.
    await until(async () => (await warningsNow()).length === 2, { message: "the endpoints without a recording" });
    const warnings = await warningsNow();
    const warning = (at: string, source: string) =>
      expect.stringContaining(`the endpoint at ${at} serves ${source}, which has no recordings yet`);
    expect(warnings).toEqual([
      warning("127.0.0.1:0 and 127.0.0.1:0", "erin/shop"),
      warning("127.0.0.1:0", "frank/shop"),
    ]);
    const folder = await mkdtemp(join(inject("serversFolder"), "doctor-"));
    const env = { TAPEDECK_URL: `http://${addresses.http}`, TAPEDECK_DATA: folder, XDG_STATE_HOME: folder };
    await using cli = startCli(["doctor", "--json"], { cwd: folder, env });
    await cli.ended;
    const { findings } = JSON.parse(cli.stdout()) as { findings: { state: string; what: string }[] };
    expect(findings.filter(({ state }) => state === "warn").map(({ what }) => what)).toEqual(
      expect.arrayContaining(warnings),
    );
  });

  it("has streams that wait, and give the first session from its start", async () => {
    const over = new AbortController();
    const stream = await fetch(`http://${addresses[overHttp]}/v1/events`, { signal: over.signal });
    expect(stream.status).toBe(200);
    const messages = grpc(overGrpc).take("/proto.SkaffoldService/Events", 2);
    const script = scenario(sourceOf("erin"));
    const session = script.session("01erin");
    session.started();
    session.configured();
    session.build("erin", "started");
    await on.seed(script.events);
    expect(await messages).toHaveLength(2);
    let text = "";
    for await (const chunk of stream.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.split("\n").length > 2) break;
    }
    over.abort();
    expect(text.split("\n")[1]).toContain('"artifact":"erin"');
    const { headers } = await http("/v1/state", {}, "GET", overHttp);
    expect(headers["tapedeck-session"]).toBe("01erin");
    const isNamed = async () => (await http("/readyz")).body.includes("erin/shop");
    await until(async () => !(await isNamed()), { message: "the endpoint to be known as recorded" });
  });

  it("is not ready while only the log has its source, as where the tables are made anew", async () => {
    const frank = "frank/shop http";
    const script = scenario(sourceOf("frank"));
    script.session("01frank").started();
    const client = new Postgres(on.stack.database);
    await client.connect();
    try {
      await client.query("begin; lock table tapedeck.events in share mode");
      await on.write(script.events);
      for (const path of ["/v1/state", "/v1/events"]) {
        const answer = await http(path, {}, "GET", frank);
        expect([answer.status, skaffoldRefusal(answer)]).toEqual([503, expect.objectContaining({ code: 14 })]);
      }
    } finally {
      await client.end();
    }
    // Waits for the tables, which get there within a moment.
    const { status, headers } = await http("/v1/state", {}, "GET", frank);
    expect([status, headers["tapedeck-session"]]).toEqual([200, "01frank"]);
  });
});

describe("Host and Origin", () => {
  const cases: [string, Record<string, string>, number][] = [
    ["nothing but loopback", {}, 200],
    ["a host that is configured", { host: "team.example.com" }, 200],
    ["a name that was rebound", { host: "evil.example" }, 403],
    ["a page from elsewhere", { origin: "https://evil.example" }, 403],
    ["a sandboxed page", { origin: "null" }, 403],
    ["an image on such a page", { "sec-fetch-site": "cross-site" }, 403],
    ["a page that is configured", { origin: dashboard }, 200],
  ];
  it.each(cases)("%s has the same answer on every path", async (_, headers, status) => {
    for (const path of ["/v1/state?source=alice/shop", "/api/v1/sources", "/healthz", "/metrics"]) {
      expect({ path, status: (await http(path, headers)).status }).toEqual({ path, status });
    }
    const bound = await http("/v1/state", headers, "GET", "alice/shop http");
    expect(bound.status).toBe(status);
  });

  it("a refusal has the path's error format and says what to do", async () => {
    const ours = JSON.parse((await http("/api/v1/sources", { host: "evil.example" })).body);
    expect(ours).toEqual({ error: { code: "forbidden", message: expect.stringContaining("gateway.hosts") } });
    const skaffolds = JSON.parse((await http("/v1/state", { origin: "https://evil.example" })).body);
    expect(skaffolds).toEqual({ code: 7, message: expect.stringContaining("gateway.origins"), details: [] });
  });

  it("a configured page may read answers and streams, and gets an answer to its preflight request", async () => {
    const allowed = { "access-control-allow-origin": dashboard, vary: "origin" };
    expect((await http("/api/v1/sources", { origin: dashboard })).headers).toMatchObject(allowed);
    const preflight = await http(
      "/v1/build/auto_execute",
      { origin: dashboard, "access-control-request-method": "PUT" },
      "OPTIONS",
    );
    expect(preflight).toMatchObject({
      status: 204,
      headers: { ...allowed, "access-control-allow-methods": "GET, POST, PUT, DELETE" },
    });
    const over = new AbortController();
    const stream = await fetch(`http://${addresses.http}/api/v1/stream`, {
      headers: { origin: dashboard },
      signal: over.signal,
    });
    expect(stream.headers.get("access-control-allow-origin")).toBe(dashboard);
    over.abort();
    expect((await http("/api/v1/sources")).headers).not.toHaveProperty("access-control-allow-origin");
  });

  it("a page that is only allowed to read where no token is needed can change nothing and take no backup", async () => {
    const description = JSON.parse((await http("/api/docs/openapi.json")).body) as { paths: Record<string, object> };
    const described = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, "none")] as const),
    );
    const changing = [
      ...described.filter(([method]) => method !== "GET"),
      ["GET", "/api/v1/backup"],
      ["GET", "/api/v1/tokens"],
      ...skaffoldMethods.flatMap(({ kind, http: { verb, path } }) =>
        kind === "control" ? [[verb, path] as const] : [],
      ),
    ] as const;
    expect(changing.map(([method]) => method)).toEqual(expect.arrayContaining(["DELETE", "POST", "PUT", "GET"]));
    const refused = { status: 403, message: expect.stringContaining("own page") };
    // It accepts only the token that it renews.
    const unproven = { status: 401, message: expect.stringContaining("a token is needed") };
    for (const [method, path] of changing) {
      const answer = await http(path, { origin: dashboard }, method);
      const { error, message = error?.message } = JSON.parse(answer.body);
      const expected = path === "/api/v1/tokens/renew" ? unproven : refused;
      expect({ method, path, status: answer.status, message }).toEqual({ method, path, ...expected });
      expect(answer.headers["access-control-allow-origin"]).toBe(dashboard);
    }
    const bound = await http("/v1/execute?source=alice/shop", { origin: dashboard }, "POST", "alice/shop http");
    expect(bound).toMatchObject({ status: 403, body: expect.stringContaining("own page") });
    // Requests for an image or a link on such a page carry no Origin.
    for (const from of ["same-site", "cross-site"]) {
      const headers = { "sec-fetch-site": from, "sec-fetch-mode": "navigate" };
      expect(await http("/api/v1/backup", headers)).toMatchObject({ status: 403 });
      expect(await http("/api/v1/sources", headers)).toMatchObject({ status: 200 });
    }
  });

  it("Tapedeck's own page and programs may do everything", async () => {
    for (const headers of [{}, { origin: `http://${addresses.http}`, "sec-fetch-site": "same-origin" }]) {
      expect(await http("/api/v1/sessions/none", headers, "DELETE")).toMatchObject({ status: 404 });
      expect(await http("/v1/execute?source=carol/shop", headers, "POST")).toMatchObject({ status: 404 });
    }
  });

  it("a refused page can read the refusal and nothing else, in the preflight request too", async () => {
    const origin = "https://evil.example";
    const readable = { "access-control-allow-origin": origin, vary: "origin" };
    for (const path of ["/api/v1/sources", "/v1/state", "/metrics"]) {
      const refusal = await http(path, { origin });
      expect(refusal).toMatchObject({ status: 403, headers: readable });
      expect(refusal.headers).not.toHaveProperty("access-control-expose-headers");
      const asks = {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "authorization",
      };
      expect(await http(path, asks, "OPTIONS")).toMatchObject({
        status: 204,
        headers: { ...readable, "access-control-allow-methods": "GET" },
      });
    }
    expect((await http("/v1/execute", { origin }, "POST")).status).toBe(403);
    const rebound = await http("/api/v1/sources", { origin, host: "evil.example" });
    expect(rebound.headers).not.toHaveProperty("access-control-allow-origin");
  });

  it("OPTIONS without an Origin is answered as Skaffold answers it", async () => {
    expect(await http("/v1/state", {}, "OPTIONS")).toMatchObject({ status: 501 });
  });
});

describe("compression", () => {
  const request = { "accept-encoding": "gzip, deflate, br" };
  const read = async (path: string, headers: Record<string, string> = {}) => {
    const over = new AbortController();
    const response = await fetch(`http://${addresses.http}${path}`, { headers, signal: over.signal });
    const encoding = response.headers.get("content-encoding");
    return { response, encoding, end: () => over.abort() };
  };

  it.each(["/api/v1/events", "/v1/state?source=alice/shop", "/api/docs/openapi.json", "/metrics"])(
    "answers of %s are compressed for clients that accept it, with the same content",
    async (path) => {
      const [plain, compressed] = [await read(path, { "accept-encoding": "identity" }), await read(path, request)];
      const isLarge = Number(plain.response.headers.get("content-length")) >= 1_024;
      expect([plain.encoding, compressed.encoding]).toEqual([null, isLarge ? "br" : null]);
      expect(isLarge).toBe(!path.startsWith("/v1"));
      // The counts in /metrics change between requests.
      if (path !== "/metrics") expect(await compressed.response.text()).toBe(await plain.response.text());
    },
  );

  it("an answer to a page varies by both Origin and Accept-Encoding", async () => {
    const { response } = await read("/api/v1/events", { ...request, origin: dashboard });
    expect(response.headers.get("vary")?.split(", ").sort()).toEqual(["accept-encoding", "origin"]);
  });

  it("an answer to HEAD has no body", async () => {
    const answer = await http("/api/v1/events", request, "HEAD");
    expect([answer.status, answer.body]).toEqual([200, ""]);
  });

  it.each([
    ["/api/v1/stream?after=start", { accept: "text/event-stream" }],
    ["/api/v1/stream?after=start", { accept: "application/x-ndjson" }],
    ["/api/v1/events", { accept: "application/x-ndjson" }],
    ["/v1/events?source=alice/shop", {}],
    ["/v2/events?source=alice/shop", {}],
  ])("a stream is not compressed, so that each message arrives at once: %s %j", async (path, headers) => {
    const { response, encoding, end } = await read(path, { ...request, ...headers });
    expect([response.status, encoding]).toEqual([200, null]);
    end();
  });

  it("a compressed request body is not decompressed", async () => {
    const ask = async (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
      (await fetch(`http://${addresses.http}/v1/execute?source=alice/shop`, { method: "POST", headers, body })).status;
    const body = Buffer.from(JSON.stringify({ build: true }));
    expect(await ask(body)).not.toBe(400);
    expect(await ask(gzipSync(body), { "content-encoding": "gzip" })).toBe(400);
  });
});

describe("gRPC's own services", () => {
  it("health is answered for the server and each service", async () => {
    await until(async () => (await health("")) === 1, { message: "SERVING" });
    const names = [
      "proto.SkaffoldService",
      "proto.v2.SkaffoldV2Service",
      "tapedeck.v1.Recorder",
      "tapedeck.v1.Tapedeck",
    ];
    for (const name of names) {
      expect({ name, status: await health(name) }).toEqual({ name, status: 1 });
    }
    await expect(health("no.such.Service")).rejects.toMatchObject({ code: 5 });
  });

  it("reflection lists the services", async () => {
    expect(await services("grpc")).toEqual(
      expect.arrayContaining([
        "proto.SkaffoldService",
        "proto.v2.SkaffoldV2Service",
        "tapedeck.v1.Recorder",
        "tapedeck.v1.Tapedeck",
        "v1alpha.PublicAPI",
      ]),
    );
  });

  it.each([["v1"], ["v1alpha"]])("reflection (%s) has every message that a service needs", async (version) => {
    const files = await reflect(
      version,
      new BinaryWriter().tag(4, WireType.LengthDelimited).string("proto.SkaffoldService"),
    );
    const file = files.find(({ service }) => service.some(({ name }) => name === "SkaffoldService"));
    expect(file?.service[0]?.method.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "GetState",
        "EventLog",
        "Events",
        "Execute",
        "AutoBuild",
        "AutoSync",
        "AutoDeploy",
        "Handle",
      ]),
    );
    for (const dependency of file?.dependency ?? []) {
      const found = await reflect(version, new BinaryWriter().tag(3, WireType.LengthDelimited).string(dependency));
      expect(found.map(({ name }) => name)).toContain(dependency);
    }
  });
});

describe("a browser", () => {
  it("gets the page at /", async () => {
    const { status, headers, body } = await http("/", { accept: "text/html,application/xhtml+xml" });
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(body).toContain('<div id="page">');
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
  });

  it("other clients get the page at /, too, and Skaffold's answer at paths that nothing has", async () => {
    expect(await http("/")).toMatchObject({ status: 200, body: expect.stringContaining('<div id="page">') });
    const { status, body } = await http("/loop");
    expect([status, JSON.parse(body)]).toEqual([404, { code: 5, message: "Not Found", details: [] }]);
    const shown = await http("/loop", { accept: "text/html" });
    expect(shown).toMatchObject({ status: 404, body: expect.stringContaining('<div id="page">') });
  });

  it("that opens the WebSocket's URL gets an explanation", async () => {
    const { status, body } = await http("/api/v1/ws");
    expect(status).toBe(426);
    expect(JSON.parse(body).error.message).toContain("tapedeck.v1.json");
  });

  it.each([
    [["tapedeck.v1.json"], "tapedeck.v1.json"],
    [["graphql-ws", "tapedeck.v1.json"], "tapedeck.v1.json"],
    [[], ""],
  ])("a WebSocket that offers %j speaks %s", async (offered, spoken) => {
    const socket = new WebSocket(`ws://${addresses.http}/api/v1/ws`, offered);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    expect(socket.protocol).toBe(spoken);
    socket.terminate();
  });
});

describe("settings", () => {
  it("every listener beyond loopback is refused unless it is confirmed", () => {
    const env = {
      TAPEDECK_GATEWAY_GRPC_HOST: "0.0.0.0",
      TAPEDECK_GATEWAY_HTTP_HOST: "::1",
      TAPEDECK_ENDPOINTS: JSON.stringify([{ source: "alice/shop", grpc: "127.0.0.1:1", http: "192.168.0.1:80" }]),
    };
    const errors = (more: object = {}) => {
      try {
        readConfig({ env: { ...env, ...more } });
        return [];
      } catch (error) {
        return (error as { errors: string[] }).errors.map((text) => text.split(":")[0]);
      }
    };
    expect(errors()).toEqual(["gateway.grpc.host", "endpoints.0.http"]);
    expect(errors({ TAPEDECK_INSECURE: "true" })).toEqual([]);
    expect(errors({ TAPEDECK_ENDPOINTS: '[{"source":"a/b","grpc":"127.0.0.1:99999"}]' })).toContain(
      "TAPEDECK_ENDPOINTS.0.grpc",
    );
  });
});

const asIs = (bytes: Buffer) => bytes;

/** 1: SERVING, 2: NOT_SERVING. */
async function health(service: string, name = "grpc"): Promise<number> {
  const request = Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).string(service).finish());
  const client = new Client(addresses[name] ?? "", credentials.createInsecure());
  try {
    const bytes = await new Promise<Buffer>((resolve, reject) =>
      client.makeUnaryRequest("/grpc.health.v1.Health/Check", asIs, asIs, request, (error, answer) =>
        error || answer === undefined ? reject(error) : resolve(answer),
      ),
    );
    return fields(bytes).find(({ no }) => no === 1)?.number ?? 0;
  } finally {
    client.close();
  }
}

async function services(name: string): Promise<string[]> {
  const answer = await askReflection("v1", new BinaryWriter().tag(7, WireType.LengthDelimited).string("*"), name);
  const list = fields(answer).find(({ no }) => no === 6)?.bytes ?? new Uint8Array();
  return fields(list).map(({ bytes }) => Buffer.from(fields(bytes)[0]?.bytes ?? []).toString());
}

async function reflect(version: string, request: BinaryWriter) {
  const answer = await askReflection(version, request, "grpc");
  const files = fields(answer).find(({ no }) => no === 4)?.bytes ?? new Uint8Array();
  return fields(files).map(({ bytes }) => fromBinary(FileDescriptorProtoSchema, bytes));
}

async function askReflection(version: string, request: BinaryWriter, name: string): Promise<Buffer> {
  const client = new Client(addresses[name] ?? "", credentials.createInsecure());
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const call = client.makeBidiStreamRequest(path, asIs, asIs);
  try {
    call.write(Buffer.from(request.finish()));
    for await (const answer of call as AsyncIterable<Buffer>) return answer;
    throw new Error("no answer");
  } finally {
    call.on("error", () => {}).cancel();
    client.close();
  }
}

/** The fields of a message on the wire. */
function fields(bytes: Uint8Array): { no: number; bytes: Uint8Array; number: number }[] {
  const reader = new BinaryReader(bytes);
  const found = [];
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    if (type === WireType.LengthDelimited) found.push({ no, bytes: reader.bytes(), number: 0 });
    else if (type === WireType.Varint) found.push({ no, bytes: new Uint8Array(), number: Number(reader.uint64()) });
    else reader.skip(type, no);
  }
  return found;
}
