import { readConfig } from "@tapedeck/gateway/config";
import { type Gateway, startGateway } from "@tapedeck/gateway/gateway";
import { scenario, write } from "@tapedeck/query/testing/scenario";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { EventSource } from "eventsource";
import { afterAll, beforeAll, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";

// A page keeps an EventSource open while the gateway stops and starts.

const cleanup = new AsyncDisposableStack();
const alice = scenario();
const session = alice.session("01A1");
let nats: TestNats;
let log: Log;
let gateway: Gateway | undefined;
let http = "127.0.0.1:0";
let written: string[] = [];

beforeAll(async () => {
  nats = cleanup.use(await startTestNats());
  const connection = cleanup.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  log = cleanup.use(await openLog(connection, { workspace: "acme", syncKnown: true, timeoutMs: 20_000 }));
  cleanup.defer(() => stop());
  session.started();
  session.configured();
  await addEvents();
});
afterAll(() => cleanup.disposeAsync());

/** Writes Alice's new events. */
async function addEvents(): Promise<void> {
  const seqs = await write(log, alice.events.slice(written.length));
  written = [...written, ...seqs.map((seq) => eventPosition(log.epoch, seq))];
}

/** Always uses the same address, which the page keeps. */
async function start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  const config = readConfig({
    env: {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_WORKSPACE: "acme",
      TAPEDECK_GATEWAY_GRPC_PORT: "0",
      TAPEDECK_GATEWAY_HTTP_PORT: http.split(":")[1] ?? "",
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`TAPEDECK_${name}`, value])),
    },
  });
  gateway = await startGateway(config, silentLogger);
  http = gateway.addresses.http ?? "";
}

async function stop(): Promise<void> {
  await gateway?.[Symbol.asyncDispose]();
  gateway = undefined;
}

function page(query = "?after=start") {
  const source = new EventSource(`http://${http}/api/v1/stream${query}`);
  cleanup.defer(() => source.close());
  const events: string[] = [];
  const named: string[] = [];
  const refusals: unknown[] = [];
  source.onmessage = ({ lastEventId, data }) => {
    expect(JSON.parse(data)).toMatchObject({ type: "event", position: lastEventId });
    events.push(lastEventId);
  };
  for (const name of ["caught_up", "bookmark", "complete", "state"])
    source.addEventListener(name, ({ data }) => named.push(JSON.parse(data).type));
  source.addEventListener("error", (error) => {
    // An error event of the connection itself has no data.
    if ("data" in error) refusals.push(JSON.parse(String(error.data)));
  });
  return { source, events, named, refusals };
}

it("an EventSource resumes by itself after the gateway was away, without loss or repeats", async () => {
  await start();
  const { source, events, named, refusals } = page();
  const hasAll = () => until(() => events.length >= written.length, { message: "all that was written" });
  await until(() => named.length === 1, { message: "caught_up" });
  expect(events).toEqual(written);

  await stop();
  session.build("while nobody served", "started");
  await addEvents();
  // The gateway is back before the log is.
  await nats.stop();
  const starting = start();
  await until(() => refusals.length > 0, { message: "a refusal" });
  expect(refusals[0]).toMatchObject({ type: "error", error: { code: "not_ready" } });
  expect(source.readyState).toBe(EventSource.CONNECTING);
  await nats.restart();
  await starting;
  session.build("after all of that", "started");
  await addEvents();
  await hasAll();

  session.build("live", "started");
  await addEvents();
  await hasAll();
  expect(events).toEqual(written);
  expect(new Set(named)).toEqual(new Set(["caught_up"]));
  // Otherwise it would reconnect in the tests below, and be counted.
  source.close();
});

it("other clients than EventSource are refused by status", async () => {
  await nats.stop();
  const ask = async (headers: Record<string, string>) => {
    const { status, headers: answered, body } = await httpCall(http, "GET", "/api/v1/stream", headers);
    return {
      status,
      type: answered["content-type"],
      retry: answered["retry-after"] ?? /^retry: (\d+)$/m.exec(body)?.[1],
      code: /"code":"(\w+)"/.exec(body)?.[1],
    };
  };
  const seen = { "last-event-id": written[0] ?? "" };
  const refused = { status: 503, type: "application/json; charset=utf-8", retry: "1", code: "not_ready" };
  const [other, lines, first, resumed] = await Promise.all([
    ask({}),
    ask({ ...seen, accept: "application/x-ndjson" }),
    ask({ accept: "text/event-stream" }),
    ask(seen),
  ]);
  expect([other, lines]).toEqual([refused, refused]);
  const notReady = { status: 200, type: "text/event-stream", retry: "1000", code: "not_ready" };
  expect([first, resumed]).toEqual([notReady, notReady]);
  await nats.restart();
});

it("an EventSource over its request rate comes back by itself; one without permission does not", async () => {
  await stop();
  await start({ LIMITS_REQUESTS_PER_SECOND: "1", LIMITS_CONNECTIONS: "2" });
  await until(async () => (await httpCall(http, "GET", "/readyz")).body.includes('"log":"ok"'), {
    message: "the log",
  });
  const pages = [page(), page(), page()];
  const isOn = ({ named }: ReturnType<typeof page>) => named.includes("caught_up");
  await until(() => pages.filter(isOn).length === 2, { message: "two of them to be let in" });
  const [late = expect.fail()] = pages.filter((one) => !isOn(one));
  await until(() => late.refusals.length > 0, { message: "the third to be refused" });
  expect(late.refusals.at(-1)).toMatchObject({ error: { code: "limit_exceeded" } });
  expect(late.source.readyState).not.toBe(EventSource.CLOSED);

  for (const one of pages) one.source.close();
  // Errors that a retry would not fix keep their status, which ends an EventSource.
  const foreign = { accept: "text/event-stream", origin: "https://evil.example" };
  const { status, headers } = await httpCall(http, "GET", "/api/v1/stream", foreign);
  expect([status, headers["access-control-allow-origin"]]).toEqual([403, foreign.origin]);
  const { source, refusals } = page("?kind=Build!");
  await until(() => source.readyState === EventSource.CLOSED, { message: "the end" });
  expect(refusals.filter((refusal) => !JSON.stringify(refusal).includes("limit_exceeded"))).toEqual([]);

  await stop();
  await start({ AUTH: "tokens", SERVICES_KEY: "a key" });
  const stranger = page();
  await until(() => stranger.source.readyState === EventSource.CLOSED, { message: "the end for who has no token" });
  expect(stranger.refusals).toEqual([]);
});
