import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { lacking, systemPath } from "@tapedeck/infra/docker/testing/on-machine";
import { scenario } from "@tapedeck/query/testing/scenario";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { gatewayEnv } from "../stack/stack.ts";

// The gateway behind an nginx that knows nothing of it: `proxy_pass`, and what nginx does by default.

const why = lacking(["nginx"], { asRoot: false });
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let on: SeededStack;
/** `asItIs` has its defaults, and `impatient` gives up on a silent server ten times as soon. */
const ports = { asItIs: 0, impatient: 0 };

/** By default nginx waits 60 s, and the gateway is silent for 15 s at most. */
const readTimeoutMs = 6_000;
const idleMs = 1_500;

describe.skipIf(why !== undefined)(`behind nginx${why === undefined ? "" : ` (${why})`}`, () => {
  beforeAll(async () => {
    on = cleanup.use(await startSeededStack());
    const config = readConfig({ env: gatewayEnv(on.stack.parts) });
    const gateway = cleanup.use(await startGateway(config, silentLogger, { idleMs }));
    await startNginx(gateway.addresses.http ?? "");
    const session = scenario();
    const first = session.session("01A1");
    first.started();
    first.configured();
    await on.seed(session.events);
  });

  it.each([
    ["server-sent events", "/api/v1/stream?kind=deploy.failed", "text/event-stream"],
    ["NDJSON", "/api/v1/stream?kind=deploy.failed", "application/x-ndjson"],
    ["Skaffold's events", "/v1/events?after=now", "*/*"],
    ["Skaffold's events of its second API", "/v2/events?after=now", "*/*"],
    ["Skaffold's log", "/v2/applicationLogs?after=now", "*/*"],
  ])("the headers of a stream without events come at once: %s", async (_, path, accept) => {
    const { response } = await read(path, accept, ports.asItIs);
    expect(response.statusCode).toBe(200);
    response.destroy();
  });

  it.each([
    ["server-sent events", "text/event-stream", ":\n\n"],
    ["NDJSON", "application/x-ndjson", '{"type":"bookmark"'],
  ])("the first event comes at once, and an idle stream lives: %s", async (_, accept, idle) => {
    const stream = await read("/api/v1/stream?after=start", accept, ports.impatient);
    let isOver = false;
    stream.response.once("close", () => {
      isOver = true;
    });
    await until(() => stream.text().includes("session.started"), { message: "the first event" });
    const silences = Math.ceil((1.5 * readTimeoutMs) / idleMs);
    const idles = () => stream.text().split(idle).length - 1;
    await until(() => isOver || idles() >= silences, { message: "a long silence" });
    expect(isOver).toBe(false);
    stream.response.destroy();
  });

  it("a bookmark of a silence is a position to resume after", async () => {
    const stream = await read("/api/v1/stream?after=start", "application/x-ndjson", ports.impatient);
    await until(() => stream.text().includes('"bookmark"'), { message: "a bookmark" });
    stream.response.destroy();
    const messages = stream
      .text()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const [before, bookmark] = messages.slice(-2);
    expect(bookmark).toEqual({ type: "bookmark", position: before.position });
  });
});

async function read(path: string, accept: string, port: number) {
  const request = get({ host: "127.0.0.1", port, path, headers: { accept }, agent: false });
  request.on("error", () => {});
  const [response] = (await once(request, "response", { signal: AbortSignal.timeout(40_000) })) as [IncomingMessage];
  let text = "";
  response.setEncoding("utf8").on("error", () => {});
  response.on("data", (chunk: string) => {
    text += chunk;
  });
  return { response, text: () => text };
}

async function startNginx(upstream: string): Promise<void> {
  const { folder } = cleanup.use(await temporaryFolder());
  ports.asItIs = await ownPort();
  ports.impatient = await ownPort();
  const file = (name: string) => join(folder, name);
  writeFileSync(
    file("nginx.conf"),
    `daemon off; worker_processes 1; pid ${file("pid")}; error_log ${file("error.log")};
events {}
http {
  access_log off;
  client_body_temp_path ${file("body")}; proxy_temp_path ${file("proxy")}; fastcgi_temp_path ${file("fastcgi")};
  uwsgi_temp_path ${file("uwsgi")}; scgi_temp_path ${file("scgi")};
  server {
    listen 127.0.0.1:${ports.asItIs};
    location / { proxy_pass http://${upstream}; }
  }
  server {
    listen 127.0.0.1:${ports.impatient};
    location / { proxy_pass http://${upstream}; proxy_read_timeout ${readTimeoutMs}ms; }
  }
}`,
  );
  const env = { ...process.env, PATH: systemPath };
  const child = spawn("nginx", ["-p", folder, "-c", file("nginx.conf"), "-e", file("error.log")], {
    env,
    stdio: "ignore",
  });
  cleanup.defer(() => ended(child));
  const answers = () => fetch(`http://127.0.0.1:${ports.impatient}/healthz`).then(({ ok }) => ok);
  await until(() => answers().catch(() => false), { message: "nginx to answer" });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
