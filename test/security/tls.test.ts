import { mkdtemp } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { WebSocket } from "ws";
import { rawClient } from "../stack/raw-call.ts";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { holds, workspaceScenario } from "../stack/two-workspaces.ts";

const scenario = workspaceScenario("acme");
const dashboard = "https://dash.example.com";
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let harness: TokenStack;
let ca: string;
let token: string;
/** "localhost:port" by the name of the listener. */
let places: Readonly<Record<string, string>>;

beforeAll(async () => {
  const made = await testCertificate(await mkdtemp(join(inject("serversFolder"), "tls-")), ["localhost"]);
  ca = made.cert;
  const endpoint = { source: "alice/shop/skaffold", grpc: "0.0.0.0:0", http: "127.0.0.1:0" };
  const open = { source: "acme/alice/shop/skaffold", grpc: "127.0.0.1:0", http: "127.0.0.1:0", open: "viewer" };
  harness = cleanup.use(
    await startTokenStack({
      TAPEDECK_TLS_CERT: made.certFile,
      TAPEDECK_TLS_KEY: made.keyFile,
      // The services listen beyond loopback, as TLS and tokens allow.
      TAPEDECK_GATEWAY_GRPC_HOST: "0.0.0.0",
      TAPEDECK_GATEWAY_HTTP_HOST: "0.0.0.0",
      TAPEDECK_GATEWAY_HOSTS: "team.example.com",
      TAPEDECK_GATEWAY_ORIGINS: dashboard,
      TAPEDECK_ENDPOINTS: JSON.stringify([endpoint, open]),
    }),
  );
  await harness.on.seed(scenario.events);
  token = (await harness.token("acme", ["viewer"])).text;
  const { addresses } = harness.on.stack.parts.gateway;
  places = Object.fromEntries(
    Object.entries(addresses).map(([name, address]) => [name, address.replace(/^.*:/, "localhost:")]),
  );
});

type Answer = { readonly status: number; readonly headers: Record<string, unknown>; readonly body: string };

function https(path: string, headers: Record<string, string> = {}, place = "http"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(
      `https://${places[place]}${path}`,
      { ca, headers, agent: false, servername: "localhost" },
      (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
      },
    );
    call.on("error", reject).end();
  });
}

describe("with TLS", () => {
  it("an open endpoint speaks plaintext, as its clients do", async () => {
    using plain = rawClient(places["acme/alice/shop/skaffold grpc"] ?? "");
    expect(holds((await plain.ask("/proto.SkaffoldService/GetState")) as Buffer, scenario.mark)).toBe(true);
    const answer = await fetch(`http://${places["acme/alice/shop/skaffold http"]}/v1/state`);
    expect([answer.status, (await answer.text()).includes(scenario.mark)]).toEqual([200, true]);
  });

  it.each(["grpc", "alice/shop/skaffold grpc"])("the gRPC listener %s speaks TLS and nothing else", async (place) => {
    const getState = "/proto.SkaffoldService/GetState";
    using client = rawClient(places[place] ?? "", credentials.createSsl(Buffer.from(ca)));
    const metadata = { ...bearing(token), "tapedeck-source": "alice/shop/skaffold" };
    expect(holds((await client.ask(getState, metadata)) as Buffer, scenario.mark)).toBe(true);
    expect(await client.ask(getState)).toMatchObject({ code: 16 });
    using plain = rawClient(places[place] ?? "");
    expect(await plain.ask(getState, metadata)).toMatchObject({ code: 14 });
    using distrusting = rawClient(places[place] ?? "", credentials.createSsl());
    expect(await distrusting.ask(getState, metadata)).toMatchObject({ code: 14 });
  });

  it.each(["http", "alice/shop/skaffold http"])("the HTTP listener %s speaks TLS and nothing else", async (place) => {
    const { status, body } = await https("/v1/state?source=alice/shop/skaffold", bearing(token), place);
    expect([status, holds(body, scenario.mark)]).toEqual([200, true]);
    expect((await https("/v1/state", {}, place)).status).toBe(401);
    await expect(fetch(`http://${places[place]}/v1/state`, { headers: bearing(token) })).rejects.toThrow();
  });

  it("WebSockets and the page use TLS", async () => {
    const socket = new WebSocket(`wss://${places.http}/api/v1/ws`, ["tapedeck.v1.json", `tapedeck.bearer.${token}`], {
      ca,
    });
    cleanup.defer(() => socket.terminate());
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    expect(socket.protocol).toBe("tapedeck.v1.json");
    expect((await https("/", { accept: "text/html" })).body).toContain('<div id="page">');
  });

  const port = () => places.http?.split(":")[1];
  const cases: [string, () => Record<string, string>, number][] = [
    ["nothing but loopback", () => ({}), 200],
    ["a host that is configured", () => ({ host: "team.example.com" }), 200],
    ["with a port", () => ({ host: `team.example.com:${port()}` }), 200],
    ["another host", () => ({ host: "evil.example" }), 403],
    ["our own page", () => ({ host: "team.example.com", origin: "https://team.example.com" }), 200],
    [
      "on another port",
      () => ({ host: `team.example.com:${port()}`, origin: `https://team.example.com:${port()}` }),
      200,
    ],
    ["its host in capitals", () => ({ host: "Team.Example.com", origin: "https://team.example.com" }), 200],
    ["its port written out", () => ({ host: "team.example.com:443", origin: "https://team.example.com" }), 200],
    [
      "a page of our name that came without TLS",
      () => ({ host: "team.example.com", origin: "http://team.example.com" }),
      403,
    ],
    ["a page from elsewhere", () => ({ origin: "https://evil.example" }), 403],
    ["a page that is allowed", () => ({ origin: dashboard }), 200],
  ];
  it.each(cases)("Host and Origin: %s", async (_, headers, status) => {
    const answer = await https("/api/v1/sources", { ...bearing(token), ...headers() });
    expect(answer.status).toBe(status);
    expect(answer.headers["access-control-allow-origin"]).toBe(headers().origin);
  });

  it.each(cases)("Host and Origin of a WebSocket: %s", async (_, headers, status) => {
    const socket = new WebSocket(`wss://${places.http}/api/v1/ws`, "tapedeck.v1.json", {
      ca,
      headers: { ...bearing(token), ...headers() },
    });
    const opened = await new Promise<number>((resolve) => {
      socket.once("open", () => resolve(200));
      socket.once("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
      socket.once("error", () => {});
    });
    socket.terminate();
    expect(opened).toBe(status);
  });
});
