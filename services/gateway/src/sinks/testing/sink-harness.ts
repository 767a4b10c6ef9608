import { openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { readConfig } from "../../config.ts";
import { startGateway } from "../../gateway.ts";
import type { SinkTimes } from "../delivery/times.ts";
import type { Receiver } from "./receiver.ts";

export const sourceOf = (developer: string, workspace = "default"): SourceName =>
  sourceName({ workspace, developer, project: "shop", upstream: "skaffold" });

/** What takes seconds in production. */
export const shortTimes: Partial<SinkTimes> = {
  leaseMs: 2_000,
  renewMs: 300,
  pollMs: 100,
  gatherMs: 5,
  cursorMs: 50,
  passedMs: 100,
  reportMs: 100,
  retryMs: 10,
  maxRetryMs: 40,
  requestMs: 5_000,
  lateMs: 200,
};

export type SinkHarness = Awaited<ReturnType<typeof startSinkHarness>>;

/** A NATS with the log of a workspace, and gateways on it with neither query nor ingest behind them. */
export async function startSinkHarness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  const logOf = async (workspace: string) =>
    stack.use(await openLog(connection, { workspace, syncKnown: true, timeoutMs: 20_000 }));
  const log = await logOf("default");
  const owned = stack.move();
  return {
    nats,
    connection,
    log,
    logOf,
    writer: (developer: string) => testWriter(log.writer, sourceOf(developer)),
    /** `settings`: as in the environment, without TAPEDECK_. */
    gateway: (settings: Readonly<Record<string, string>> = {}, times: Partial<SinkTimes> = {}) =>
      startSinkGateway(nats.url, settings, { ...shortTimes, ...times }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The settings with which a gateway may deliver to receivers of this machine. */
export const settingsFor = (natsUrl: string): Readonly<Record<string, string>> => ({
  TAPEDECK_SERVICES_KEY: "test-key",
  TAPEDECK_NATS_URL: natsUrl,
  TAPEDECK_NATS_SYNC_ALWAYS: "true",
  TAPEDECK_GATEWAY_GRPC_PORT: "0",
  TAPEDECK_GATEWAY_HTTP_PORT: "0",
  TAPEDECK_QUERY_ADDRESS: "127.0.0.1:1",
  TAPEDECK_INGEST_ADDRESS: "127.0.0.1:1",
  TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1",
});

async function startSinkGateway(
  natsUrl: string,
  settings: Readonly<Record<string, string>>,
  times: Partial<SinkTimes>,
) {
  const more = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`TAPEDECK_${name}`, value]));
  const config = readConfig({ env: { ...settingsFor(natsUrl), ...more } });
  const gateway = await startGateway(config, silentLogger, { sinks: times });
  const http = gateway.addresses.http ?? "";
  const call = async (method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}) => {
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`http://${http}/api/v1/sinks${path}`, init);
    return { status: response.status, body: (await response.json()) as SinkAnswer };
  };
  return {
    http,
    call,
    add: (name: string, { url }: Pick<Receiver, "url">, more: object = {}) =>
      call("POST", "", { name, target: url, start: "start", ...more }),
    sink: async (name: string) => (await call("GET", "")).body.items?.find((one) => one.name === name),
    metrics: async () => (await fetch(`http://${http}/metrics`)).text(),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

type SinkAnswer = {
  readonly items?: readonly Readonly<Record<string, unknown>>[];
  readonly error?: { readonly code: string; readonly message: string; readonly field?: string };
} & Readonly<Record<string, unknown>>;
