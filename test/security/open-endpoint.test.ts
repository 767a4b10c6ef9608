import { bearerProtocol } from "@tapedeck/gateway/auth/bearer";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { EventSource } from "eventsource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SkaffoldClient, skaffoldClient } from "../skaffold/client.ts";
import { skaffoldRefusal } from "../stack/error-info.ts";
import { httpCall } from "../stack/http-call.ts";
import { rawClient } from "../stack/raw-call.ts";
import { bearing, startTokenStack, type TestToken, type TokenStack } from "../stack/token-stack.ts";

// Endpoints for clients that can't send a token, on a Tapedeck that requires one.

const cleanup = new AsyncDisposableStack();
const open = "globex/eve/shop/skaffold";
const closed = "alice/shop";
let harness: TokenStack;
let addresses: Readonly<Record<string, string>>;
let viewer: TestToken;
let controller: TestToken;

beforeAll(async () => {
  const at = { grpc: "127.0.0.1:0", http: "127.0.0.1:0" };
  const endpoints = [
    { source: open, ...at, open: "viewer" },
    { source: closed, ...at },
  ];
  harness = cleanup.use(await startTokenStack({ TAPEDECK_ENDPOINTS: JSON.stringify(endpoints) }));
  addresses = harness.on.stack.parts.gateway.addresses;
  [viewer, controller] = await Promise.all([
    harness.token("globex", ["viewer"]),
    harness.token("globex", ["controller"]),
  ]);
  for (const [workspace, developer] of [
    ["globex", "eve"],
    ["globex", "mallory"],
    ["acme", "alice"],
  ] as const) {
    const script = scenario(sourceName({ workspace, developer, project: "shop", upstream: "skaffold" }));
    const session = script.session(`01${developer}`);
    session.started();
    session.configured();
    session.build(developer, "started");
    await harness.on.seed(script.events);
  }
});
afterAll(() => cleanup.disposeAsync());

const http = (path: string, headers: Record<string, string> = {}, method = "GET", source: string = open) =>
  httpCall(addresses[`${source} http`] ?? "", method, path, headers);
const grpc = (source: string = open): SkaffoldClient => cleanup.use(skaffoldClient(addresses[`${source} grpc`] ?? ""));
const getState = "/proto.v2.SkaffoldV2Service/GetState";

describe("without a token", () => {
  it("a client reads the endpoint's source, in that source's workspace", async () => {
    const answer = await grpc().unary("/proto.SkaffoldService/GetState");
    expect([answer.code, answer.metadata.get("tapedeck-session")]).toEqual([0, ["01eve"]]);
    expect(await grpc().take("/proto.SkaffoldService/Events", 2)).toHaveLength(2);
    expect(await http("/v1/state")).toMatchObject({ status: 200, headers: { "tapedeck-session": "01eve" } });
  });

  it("a client reads no other source", async () => {
    for (const source of ["mallory/shop", "acme/alice/shop/skaffold"]) {
      expect(await grpc().unary(getState, undefined, { "tapedeck-source": source })).toMatchObject({ code: 3 });
      for (const path of ["/v1/state", "/api/v1/state", "/api/v1/events", "/api/v1/stream"]) {
        expect(await http(`${path}?source=${source}`)).toMatchObject({ status: 400 });
        expect(await http(path, { "tapedeck-source": source })).toMatchObject({ status: 400 });
      }
      expect(await http(`/api/v1/events?source=${source}&source=eve/shop`)).toMatchObject({ status: 400 });
    }
  });

  it("a client reads only the source's events and state through Tapedeck's own API, whatever the filter says", async () => {
    const events = async (query: string) => {
      const { items } = JSON.parse((await http(`/api/v1/events${query}`)).body);
      return new Set(items.map(({ source }: { source: string }) => source));
    };
    expect(await events("")).toEqual(new Set([open]));
    expect(await events("?source=eve/shop")).toEqual(new Set([open]));
    expect(await events("?developer=mallory")).toEqual(new Set());
    expect(await events("?session=01mallory")).toEqual(new Set());
    expect(JSON.parse((await http("/api/v1/state")).body)).toMatchObject({ source: open, session: "01eve" });
    for (const path of ["sources", "sessions", "operations", "stats/builds", "tokens", "ws"]) {
      expect({ path, ...(await http(`/api/v1/${path}`)) }).toMatchObject({ path, status: 404 });
    }
  });

  it("EventSource works", async () => {
    const source = new EventSource(`http://${addresses[`${open} http`]}/api/v1/stream?after=start`);
    cleanup.defer(() => source.close());
    const from = new Set<string>();
    source.onmessage = ({ data }) => from.add(JSON.parse(data).event.source);
    let isCaughtUp = false;
    source.addEventListener("caught_up", () => {
      isCaughtUp = true;
    });
    await until(() => isCaughtUp, { message: "caught_up" });
    expect(from).toEqual(new Set([open]));
  });

  it("a client controls nothing", async () => {
    for (const [verb, path] of [
      ["POST", "/v1/execute"],
      ["PUT", "/v1/build/auto_execute"],
      ["POST", "/v2/execute"],
    ] as const) {
      const refusal = skaffoldRefusal(await http(path, {}, verb));
      expect(refusal).toMatchObject({ code: 7, info: { reason: "forbidden" } });
    }
    const client = cleanup.use(rawClient(addresses[`${open} grpc`] ?? ""));
    for (const name of ["Execute", "AutoBuild", "Handle"]) {
      for (const service of ["proto.SkaffoldService", "proto.v2.SkaffoldV2Service"]) {
        expect(await client.code(`/${service}/${name}`)).toBe(7);
      }
    }
  });

  it("every other endpoint refuses", async () => {
    expect((await http("/v1/state", {}, "GET", closed)).status).toBe(401);
    expect(await grpc(closed).unary(getState)).toMatchObject({ code: 16 });
    expect((await httpCall(harness.on.stack.http, "GET", "/api/v1/events")).status).toBe(401);
    expect((await http("/api/v1/events", bearing(viewer.text), "GET", closed)).status).toBe(404);
  });

  it("a page from another origin is refused there too", async () => {
    expect((await http("/v1/state", { origin: "https://evil.example" })).status).toBe(403);
    expect((await http("/v1/state", { host: "evil.example" })).status).toBe(403);
  });
});

describe("a token that is sent to it", () => {
  it("has its usual rights", async () => {
    expect((await http("/v1/state", bearing(viewer.text))).status).toBe(200);
    expect((await http("/v1/state", bearing("tdk_guess"))).status).toBe(401);
    expect((await http("/v1/state", { "sec-websocket-protocol": `${bearerProtocol}tdk_guess` })).status).toBe(401);
    const refusal = skaffoldRefusal(await http("/v1/execute", bearing(viewer.text), "POST"));
    expect(refusal).toMatchObject({ code: 7 });
    // The call is allowed, although the source is not recorded.
    expect(skaffoldRefusal(await http("/v1/execute", bearing(controller.text), "POST"))).toMatchObject({
      info: { reason: "upstream_away" },
    });
  });
});
