import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsPath, gatewayHarness, type Limited, refusalOf } from "./testing/limited-gateway.ts";

const exhausted = { code: 8, reason: "limit_exceeded" };

const stack = new AsyncDisposableStack();
let harness: Awaited<ReturnType<typeof gatewayHarness>>;
beforeAll(async () => {
  harness = stack.use(await gatewayHarness());
});
afterAll(() => stack.disposeAsync());

const gateway = async (limits: Readonly<Record<string, string>>) => stack.use(await harness.gateway(limits));
const error = async (response: Response) => ((await response.json()) as { error: { code: string } }).error;

describe("live connections of one token", () => {
  let on: Limited;
  beforeAll(async () => {
    on = await gateway({ AUTH: "tokens", LIMITS_CONNECTIONS: "3", LIMITS_REQUESTS_PER_SECOND: "1000" });
  });

  it("count over all transports, and free their place however they end", async () => {
    const token = await harness.token();
    const call = on.call(eventsPath, { token });
    expect(await call.opened).toBeUndefined();
    const stream = await on.sse(token);
    expect(stream.response.status).toBe(200);
    const socket = await on.socket(token);
    socket.send({ type: "ping" });
    await until(() => socket.got.length === 1, { message: "the socket to be served" });

    const refused = await on.sse(token);
    expect([refused.response.status, refused.response.headers.get("retry-after")]).toEqual([429, "10"]);
    expect(await error(refused.response)).toEqual({
      code: "limit_exceeded",
      message: "more than 3 live streams and sockets of this token at one address: close one of them first",
    });
    expect(await (await on.get("/v1/events", token)).json()).toMatchObject({
      code: 8,
      details: [{ reason: "limit_exceeded" }],
    });
    expect(refusalOf(await on.call(eventsPath, { token }).over)).toEqual({ ...exhausted, retryAfter: "10" });
    const late = await on.socket(token);
    expect(await late.closed).toEqual({ code: 4429, reason: "too many live connections" });
    expect(late.got).toEqual([{ type: "error", error: expect.objectContaining({ code: "limit_exceeded" }) }]);
    // What asks once is no live connection.
    expect((await on.get("/api/v1/events", token)).status).toBe(200);

    for (const end of [socket.end, stream.end, call.end]) {
      end();
      const next = await until(
        async () => {
          const opened = await on.sse(token);
          return opened.response.status === 200 ? opened : undefined;
        },
        { message: "the place that was left" },
      );
      next.end();
      await until(async () => (await on.sse(token)).response.status === 200, { message: "a place that stays taken" });
    }
  });

  it("of others do not count", async () => {
    const [one, other] = [await harness.token(), await harness.token()];
    for (const token of [one, one, one, other, other, other]) expect((await on.sse(token)).response.status).toBe(200);
  });

  it("count by the address that they come from, up to a limit of all of them", async () => {
    const shared = await gateway({ AUTH: "tokens", LIMITS_CONNECTIONS: "2", LIMITS_TOKEN_CONNECTIONS: "3" });
    const token = await harness.token();
    const statuses: number[] = [];
    const refusals: string[] = [];
    for (const localAddress of ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"]) {
      const { status, text } = await shared.sseFrom(localAddress, token);
      statuses.push(status ?? 0);
      if (status !== 200) refusals.push(await text());
    }
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
    expect(refusals[0]).toContain("more than 2 live streams and sockets of this token at one address");
    expect(refusals[1]).toContain("more than 3 live streams and sockets of this token:");
    expect((await shared.sseFrom("127.0.0.3", await harness.token())).status).toBe(200);
  });

  it("Push is one", async () => {
    const token = await harness.token("recorder", "viewer");
    for (let count = 0; count < 3; count++) expect((await on.sse(token)).response.status).toBe(200);
    expect(refusalOf(await on.call(RecorderService.push.path, { token }).over)).toMatchObject(exhausted);
  });
});

describe("without authentication", () => {
  it("nobody is held to what a token may have", async () => {
    const on = await gateway({});
    const sockets = await Promise.all(Array.from({ length: 51 }, () => on.socket()));
    const [first] = sockets;
    for (let count = 0; count < 150; count++) first?.send({ type: "ping" });
    for (const socket of sockets) socket.send({ type: "ping" });
    await until(() => sockets.every(({ got }) => got.length > 0) && first?.got.length === 151, { message: "pongs" });
    expect(sockets.flatMap(({ got }) => got).every(({ type }) => type === "pong")).toBe(true);
    const { headers } = await on.get("/api/v1/events");
    expect(headers.get("ratelimit-limit")).toBeNull();
  });

  it("an address is, where a limit is set", async () => {
    const on = await gateway({ LIMITS_CONNECTIONS: "1" });
    expect((await on.sse()).response.status).toBe(200);
    expect((await on.sse()).response.status).toBe(429);
    expect(refusalOf(await on.call(eventsPath).over)).toMatchObject(exhausted);
  });
});

describe("at an endpoint that is open to viewers", () => {
  const source = "alice/shop/skaffold";
  let on: ReturnType<Limited["endpoint"]>;
  beforeAll(async () => {
    const endpoints = [{ source, grpc: "127.0.0.1:0", http: "127.0.0.1:0", open: "viewer" }];
    on = (await gateway({ AUTH: "tokens", ENDPOINTS: JSON.stringify(endpoints) })).endpoint(source);
  });

  it("an address without a token may have what a token may have", async () => {
    const opened = await Promise.all(Array.from({ length: 50 }, () => on.sse()));
    expect(new Set(opened.map(({ response }) => response.status))).toEqual(new Set([200]));
    const refused = await on.get("/api/v1/stream");
    expect(refused.status).toBe(429);
    expect(await error(refused)).toEqual({
      code: "limit_exceeded",
      message: "more than 50 live streams and sockets: close one of them first",
    });
    expect(refusalOf(await on.call("/proto.SkaffoldService/Events").over)).toMatchObject(exhausted);
    const known = await on.sse(await harness.token());
    expect(known.response.status).toBe(200);
    for (const { end } of [...opened, known]) end();
  });

  it("its requests are counted, and a token's beside them", async () => {
    const path = "/api/v1/events?limit=1";
    const { headers } = await on.get(path);
    expect(headers.get("ratelimit-limit")).toBe("100");
    const token = await harness.token();
    await until(
      async () => {
        const answers = await Promise.all(Array.from({ length: 101 }, () => on.get(path)));
        return answers.some(({ status }) => status === 429);
      },
      { message: "a second to be used up" },
    );
    expect((await on.get(path, token)).status).toBe(200);
  });
});

describe("requests per second", () => {
  const perSecond = 20;
  let on: Limited;
  beforeAll(async () => {
    on = await gateway({ AUTH: "tokens", LIMITS_REQUESTS_PER_SECOND: String(perSecond) });
  });
  const path = "/api/v1/events?limit=1";
  /** Uses up the present second, and gives the answer that said so. */
  const usedUp = (token: string, at = path) =>
    until(
      async () => {
        const answers = await Promise.all(Array.from({ length: perSecond + 1 }, () => on.get(at, token)));
        return answers.find(({ status }) => status === 429);
      },
      { message: "a second to be used up" },
    );

  it("answers say how the caller stands", async () => {
    const { headers } = await on.get(path, await harness.token());
    const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => headers.get(`ratelimit-${name}`));
    expect([limit, remaining, reset]).toEqual(["20", "19", "1"]);
  });

  it.each(["/api/v1/events?limit=1", "/api/v1/nothing-here"])("%s: 429 with Retry-After past them", async (at) => {
    const refusal = await usedUp(await harness.token(), at);
    expect(refusal.headers.get("retry-after")).toBe("1");
    expect(await error(refusal)).toEqual({
      code: "limit_exceeded",
      message: "more than 20 requests in a second: wait before the next request",
    });
  });

  it("Skaffold's paths say it in Skaffold's words", async () => {
    const refusal = await usedUp(await harness.token(), "/v1/execute");
    expect(await refusal.json()).toMatchObject({ code: 8, details: [{ reason: "limit_exceeded" }] });
  });

  it("are one budget for all transports", async () => {
    const token = await harness.token();
    const refusedCall = await until(
      async () => {
        await usedUp(token);
        const call = on.call(eventsPath, { token });
        const status = await call.opened;
        call.end();
        return status?.code === 8 ? status : undefined;
      },
      { message: "a call that comes too late" },
    );
    expect(refusalOf(refusedCall)).toEqual({ ...exhausted, retryAfter: "1" });
    await until(async () => (await usedUp(token)) && (await on.socket(token)).status === 429, { message: "no socket" });
  });

  it("messages of a socket count; it gets an error, and goes on", async () => {
    const token = await harness.token();
    const socket = await until(
      async () => {
        const opened = await on.socket(token);
        return opened.status === 101 ? opened : undefined;
      },
      { message: "a socket" },
    );
    const refused = () => socket.got.filter(({ error }) => error?.code === "limit_exceeded");
    await until(
      () => {
        for (let count = 0; count < perSecond; count++) socket.send({ type: "ping" });
        // One of perSecond + 1 messages is refused: if one subscription followed the pings, it could be a ping each time.
        for (let count = 0; count <= perSecond; count++) socket.send({ type: "subscribe", id: "a" });
        return refused().some(({ id }) => id === "a");
      },
      { message: "a subscription that was refused" },
    );
    expect(refused().every(({ id, type }) => type === "error" && (id === undefined || id === "a"))).toBe(true);
    const pongs = () => socket.got.filter(({ type }) => type === "pong").length;
    const before = pongs();
    await until(
      () => {
        socket.send({ type: "ping" });
        return pongs() > before;
      },
      { message: "a second in which it is heard" },
    );
  });

  it("of another token, health and the page are as before", async () => {
    const [token, other] = [await harness.token(), await harness.token()];
    await usedUp(token);
    expect((await on.get(path, other)).status).toBe(200);
    const open = await Promise.all(Array.from({ length: 2 * perSecond }, () => on.get("/healthz")));
    expect(open.every(({ status }) => status === 200)).toBe(true);
    expect(open[0]?.headers.get("ratelimit-limit")).toBeNull();
  });
});

it("a caller that shows again and again what is no token must wait; a good token is let in all the same", async () => {
  const on = await gateway({ AUTH: "tokens", LIMITS_REFUSALS_PER_MINUTE: "3" });
  const statuses: number[] = [];
  for (let count = 0; count < 3; count++) statuses.push((await on.get("/api/v1/events", "tdk_guess")).status);
  expect(statuses).toEqual([401, 401, 401]);
  const refusal = await on.get("/api/v1/events", "tdk_guess");
  expect(refusal.status).toBe(429);
  expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(1);
  expect((await error(refusal)).code).toBe("limit_exceeded");
  expect(refusalOf(await on.call(eventsPath, { token: "tdk_guess" }).over)).toMatchObject(exhausted);
  expect((await on.get("/api/v1/events", await harness.token())).status).toBe(200);
});
