import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";

let stack: AsyncDisposableStack;
beforeEach(() => {
  stack = new AsyncDisposableStack();
});
afterEach(() => stack.disposeAsync());

type Line = { readonly level: number; readonly msg: string };

/** The gateway as a process of its own. */
function launch(env: Record<string, string>) {
  const child: ChildProcess = spawn(process.execPath, [fileURLToPath(new URL("./main.ts", import.meta.url))], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: {
      ...process.env,
      TAPEDECK_LOG_FORMAT: "json",
      TAPEDECK_GATEWAY_GRPC_PORT: "0",
      TAPEDECK_GATEWAY_HTTP_PORT: "0",
      TAPEDECK_QUERY_ADDRESS: "127.0.0.1:1",
      TAPEDECK_INGEST_ADDRESS: "127.0.0.1:1",
      ...env,
    },
  });
  stack.defer(() => void child.kill("SIGKILL"));
  const lines: Line[] = [];
  let rest = "";
  child.stderr?.on("data", (data) => {
    const parts = (rest + data).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part.startsWith("{")) lines.push(JSON.parse(part));
  });
  const reported = once(child, "message").then(([message]) => message as { type: string; addresses: { http: string } });
  const code = once(child, "exit").then(([exit]) => exit as number | null);
  return { child, lines, reported, code };
}

const get = async (http: string, path: string) => {
  const response = await fetch(`http://${http}${path}`);
  return { status: response.status, headers: response.headers, body: await response.text() };
};

const served = (http: string) =>
  until(async () => (await get(http, "/api/v1/events")).status === 200, { message: "events to be served" });

/** A NATS with the log of the default workspace, in which nothing is recorded. */
async function startNatsWithLog() {
  const nats = await startTestNats();
  await onConnection(nats.url, beginLog);
  return nats;
}

/** Another log takes the place of the present one. */
function replaceLog(url: string): Promise<void> {
  return onConnection(url, async (connection) => {
    await (await jetstreamManager(connection)).streams.delete(streamOf("default"));
    await beginLog(connection);
  });
}

async function beginLog(connection: NatsConnection): Promise<void> {
  await using _ = await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 });
}

async function onConnection(url: string, work: (connection: NatsConnection) => Promise<void>): Promise<void> {
  const connection = await connect({ servers: url });
  try {
    await work(connection);
  } finally {
    await connection.close();
  }
}

it("warns at once of an endpoint whose source has not been recorded", async () => {
  await using nats = await startTestNats();
  const endpoints = [{ source: "alice/shpo", http: "127.0.0.1:0" }];
  const { reported, lines } = launch({ TAPEDECK_NATS_URL: nats.url, TAPEDECK_ENDPOINTS: JSON.stringify(endpoints) });
  await reported;
  const found = () =>
    lines.some(({ level, msg }) => level === 40 && msg.includes("serves alice/shpo, which has no recordings"));
  await until(found, { message: "the warning" });
});

it("listens while NATS is away, says so, and serves when it is there", async () => {
  await using nats = await startNatsWithLog();
  await nats.stop();
  const gateway = launch({ TAPEDECK_NATS_URL: nats.url });
  const { type, addresses } = await gateway.reported;
  expect(type).toBe("ready");
  expect(await get(addresses.http, "/healthz")).toMatchObject({ status: 200 });
  const ready = await get(addresses.http, "/readyz");
  expect([ready.status, JSON.parse(ready.body).checks.log]).toEqual([503, expect.stringContaining("can't be reached")]);
  const events = await get(addresses.http, "/api/v1/events");
  expect(events.status).toBe(503);
  expect(events.headers.get("retry-after")).toBe("1");
  expect(JSON.parse(events.body)).toMatchObject({ error: { code: "not_ready" } });
  const stream = await get(addresses.http, "/api/v1/stream");
  expect(stream).toMatchObject({ status: 503, body: events.body });

  await nats.restart();
  await served(addresses.http);
  gateway.child.kill("SIGTERM");
  expect(await gateway.code).toBe(0);
});

it("stops at once though NATS was never there", async () => {
  const gateway = launch({ TAPEDECK_NATS_URL: "127.0.0.1:1" });
  await gateway.reported;
  gateway.child.kill("SIGTERM");
  expect(await gateway.code).toBe(0);
});

it("serves another log that takes the place of its own, and readers of the old one get an error", async () => {
  await using nats = await startNatsWithLog();
  const gateway = launch({ TAPEDECK_NATS_URL: nats.url });
  const { addresses } = await gateway.reported;
  await served(addresses.http);
  const socket = new WebSocket(`ws://${addresses.http}/api/v1/ws`);
  const got: string[] = [];
  socket.on("message", (data) => got.push(String(data)));
  await once(socket, "open");
  socket.send('{"type":"subscribe","id":"a"}');
  await until(() => got.length === 1, { message: "caught_up" });
  await replaceLog(nats.url);
  await until(() => got.length === 2, { message: "the error" });
  expect(JSON.parse(got[1] ?? "{}")).toMatchObject({ type: "error", id: "a", error: { code: "not_ready" } });
  socket.send('{"type":"subscribe","id":"b"}');
  await until(() => got.length === 3, { message: "caught_up in the new log" });
  const [before, after] = [got[0], got[2]].map((text) => JSON.parse(text ?? "{}"));
  expect(after).toMatchObject({ type: "caught_up", id: "b" });
  expect(epochOf(after.position)).not.toBe(epochOf(before.position));
  expect(gateway.lines.filter(({ msg }) => msg.includes("the log was replaced by another one"))).toHaveLength(1);
});

const epochOf = (position: string) => position.split("-").at(-1);

it("notices a log that was replaced while NATS was away", async () => {
  await using nats = await startNatsWithLog();
  const gateway = launch({ TAPEDECK_NATS_URL: nats.url });
  const { addresses } = await gateway.reported;
  await served(addresses.http);
  const epoch = async () => {
    const { status, body } = await get(addresses.http, "/api/v1/events");
    return status === 200 ? epochOf(JSON.parse(body).position) : undefined;
  };
  const before = await epoch();
  gateway.child.kill("SIGSTOP");
  await nats.kill();
  await nats.restart();
  await replaceLog(nats.url);
  gateway.child.kill("SIGCONT");
  await until(async () => ![undefined, before].includes(await epoch()), { message: "the new log" });
});

it("wrong credentials are reported as what they are", async () => {
  await using nats = await startTestNats({ user: "tapedeck", password: "right" });
  const { host } = new URL(nats.url);
  const gateway = launch({ TAPEDECK_NATS_URL: host, TAPEDECK_NATS_USER: "tapedeck", TAPEDECK_NATS_PASSWORD: "wrong" });
  expect(await gateway.code).toBe(1);
  expect(gateway.lines.at(-1)?.msg).toContain("refuses nats.user and nats.password");
});

it("a WebSocket is closed with a reason when the gateway goes away", async () => {
  await using nats = await startTestNats();
  const gateway = launch({ TAPEDECK_NATS_URL: nats.url });
  const { addresses } = await gateway.reported;
  const socket = new WebSocket(`ws://${addresses.http}/api/v1/ws`);
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  await once(socket, "open");
  gateway.child.kill("SIGTERM");
  expect(await closed).toBe(1001);
  expect(await gateway.code).toBe(0);
});

it.each([
  ["known to sync", { TAPEDECK_NATS_SYNC_ALWAYS: "true" }, 0],
  ["not known to sync", {}, 1],
])("a nats-server that is %s", async (_, env, warnings) => {
  await using nats = await startNatsWithLog();
  const gateway = launch({ TAPEDECK_NATS_URL: nats.url, ...env });
  const { addresses } = await gateway.reported;
  await served(addresses.http);
  expect(gateway.lines.filter(({ msg }) => msg.includes("sync_interval"))).toHaveLength(warnings);
});
