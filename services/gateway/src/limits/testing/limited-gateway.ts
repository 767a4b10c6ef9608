import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { ErrorInfo } from "@tapedeck/proto/google/rpc/error_details";
import { Status } from "@tapedeck/proto/google/rpc/status";
import { EventsRequest, TapedeckService } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { WebSocket } from "ws";
import { readConfig } from "../../config.ts";
import { startGateway } from "../../gateway.ts";

const alice = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });

export type Limited = Awaited<ReturnType<Awaited<ReturnType<typeof gatewayHarness>>["gateway"]>>;

/** A log with three events; gateways on it with limits of their own, and no query and no ingest behind them. */
export async function gatewayHarness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  await testWriter(log.writer, alice).append(3);
  const store = await openTokenStore(connection);
  const owned = stack.move();
  return {
    /** The text of a new token. */
    async token(...roles: readonly Role[]): Promise<string> {
      const wish = { name: "a test", workspace: "default", developer: "alice", lifetimeMs: 3_600_000 };
      const made = makeToken({ ...wish, roles: roles.length === 0 ? ["viewer"] : [...roles] });
      await store.create(made);
      return made.text;
    },
    /** `limits`: as in the environment, without TAPEDECK_. */
    gateway: (limits: Readonly<Record<string, string>>) => limitedGateway(nats.url, limits),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function limitedGateway(natsUrl: string, settings: Readonly<Record<string, string>>) {
  await using stack = new AsyncDisposableStack();
  const env = {
    SERVICES_KEY: "test-key",
    NATS_URL: natsUrl,
    NATS_SYNC_ALWAYS: "true",
    GATEWAY_GRPC_PORT: "0",
    GATEWAY_HTTP_PORT: "0",
    QUERY_ADDRESS: "127.0.0.1:1",
    INGEST_ADDRESS: "127.0.0.1:1",
    ...settings,
  };
  const named = Object.fromEntries(Object.entries(env).map(([name, value]) => [`TAPEDECK_${name}`, value]));
  const { addresses } = stack.use(await startGateway(readConfig({ env: named }), silentLogger));
  const { grpc = "", http = "" } = addresses;
  const owned = stack.move();
  return {
    ...clients({ grpc, http }, owned),
    /** The same of an endpoint for that source. */
    endpoint: (source: string) =>
      clients({ grpc: addresses[`${source} grpc`] ?? "", http: addresses[`${source} http`] ?? "" }, owned),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Doors = { readonly grpc: string; readonly http: string };

function clients({ grpc, http }: Doors, owned: AsyncDisposableStack) {
  const channel = owned.adopt(grpcClient(grpc), (client) => client.close());
  return {
    grpc,
    http,
    get: (path: string, token?: string) => fetch(`http://${http}${path}`, { headers: bearing(token) }),
    /** Server-sent events; `end` hangs up without a word. */
    async sse(token?: string) {
      const over = new AbortController();
      const response = await fetch(`http://${http}/api/v1/stream`, { headers: bearing(token), signal: over.signal });
      return { response, end: () => over.abort() };
    },
    /** For a client at another address of this machine. */
    async sseFrom(localAddress: string, token?: string) {
      const [host, port] = http.split(":");
      const headers = bearing(token);
      const request = get({ host, port, path: "/api/v1/stream", headers, localAddress, agent: false });
      request.on("error", () => {});
      owned.defer(() => void request.destroy());
      const [response] = (await once(request, "response")) as [IncomingMessage];
      return { status: response.statusCode, text: async () => Buffer.concat(await response.toArray()).toString() };
    },
    socket: (token?: string) => openSocket(http, token),
    call: (path: string, options: CallOptions = {}) => openCall(channel, path, options),
    /** A client with a connection of its own. */
    other: () => owned.adopt(grpcClient(grpc), (client) => client.close()),
  };
}

export const eventsPath = TapedeckService.events.path;
const asIs = (bytes: Buffer) => bytes;

export type CallOptions = {
  readonly token?: string;
  readonly request?: Uint8Array;
  /** Whether the client has said all with that. Default true. */
  readonly isWhole?: boolean;
};

/** A call of any kind, with one request message. */
export function openCall(
  client: Client,
  path: string,
  { token, request = liveEvents, isWhole = true }: CallOptions = {},
) {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(bearing(token))) metadata.set(name, value);
  const call = client.makeBidiStreamRequest(path, asIs, asIs, metadata);
  const opened = Promise.withResolvers<void>();
  let isOpen = false;
  call.on("metadata", () => {
    isOpen = true;
    opened.resolve();
  });
  call.on("error", () => {});
  call.resume();
  call.write(Buffer.from(request));
  if (isWhole) call.end();
  const over = new Promise<StatusObject>((resolve) => call.on("status", resolve));
  return {
    /** Ended by the server, or by the client: code 1. */
    over,
    /** Resolves when the server has begun to answer, or with the status when it never did. */
    opened: Promise.race([opened.promise, over]),
    get isOpen() {
      return isOpen;
    },
    /** The client says no more. */
    finish: () => call.end(),
    end: () => call.cancel(),
  };
}

/** Everything that comes, without an end. */
const liveEvents = EventsRequest.encode(EventsRequest.fromPartial({ after: "start" })).finish();

function grpcClient(address: string): Client {
  return new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

/** Resolves when it is open, or with the HTTP status that it was refused with. */
async function openSocket(http: string, token?: string) {
  const socket = new WebSocket(`ws://${http}/api/v1/ws`, "tapedeck.v1.json", { headers: bearing(token) });
  const got: SocketMessage[] = [];
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once("close", (code, reason) => resolve({ code, reason: String(reason) })),
  );
  socket.on("message", (data) => got.push(JSON.parse(String(data)) as SocketMessage));
  socket.on("error", () => {});
  const status = await new Promise<number>((resolve) => {
    socket.once("open", () => resolve(101));
    socket.once("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
  });
  return {
    status,
    got,
    closed,
    send: (message: object | string) => socket.send(typeof message === "string" ? message : JSON.stringify(message)),
    /** Hangs up without a word. */
    end: () => socket.terminate(),
  };
}

type SocketMessage = {
  readonly type: string;
  readonly id?: string;
  readonly error?: { readonly code: string; readonly message: string };
};

function bearing(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The google.rpc.ErrorInfo's reason, and when to try again. */
export function refusalOf({ code, metadata }: StatusObject) {
  const [details] = metadata.get("grpc-status-details-bin");
  const [detail] = Buffer.isBuffer(details) ? Status.decode(details).details : [];
  const reason = detail === undefined ? undefined : ErrorInfo.decode(detail.value).reason;
  return { code, reason, retryAfter: metadata.get("retry-after")[0] };
}
