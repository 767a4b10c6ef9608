import { Client, type ClientReadableStream, connectivityState, credentials, status } from "@grpc/grpc-js";
import { GetInfoRequest, GetInfoResponse, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { callUnary, failed, type Reply, same } from "../polling/unary-call.ts";

export type DialOptions = {
  readonly address: string;
  /** For an answer that proves that rkt is there, in ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

export type Dialled =
  | { readonly there: "rkt"; readonly connection: Connection }
  /** Something that is not rkt's api-service, and how it answered. */
  | { readonly there: "stranger"; readonly reason: string }
  | { readonly there: "nothing" };

export type Connection = {
  /** v1alpha.GetInfoResponse, as it came. */
  readonly info: Buffer;
  /** The data directory, which tells one host's pods from another's; the address of a rkt too old to tell it. */
  readonly identity: string;
  readonly version: string;
  /** Aborts when the connection is lost or left; whatever is asked then has no answer. */
  readonly signal: AbortSignal;
  /** Resolves when it is lost or left, with why. */
  readonly over: Promise<string>;
  /** Never rejects. An answer of UNAVAILABLE is the end of the connection. */
  readonly call: (path: string, request: Uint8Array, timeoutMs: number) => Promise<Reply>;
  readonly open: (path: string, request: Uint8Array) => ClientReadableStream<Buffer>;
};

const clientOptions = {
  // A host of 5,000 pods answers 2.5 MB, and rkt knows no limit.
  "grpc.max_receive_message_length": -1,
  // A connection of its own each time: what was asked on one that is lost must not go on with the next server.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
  // A host that is gone without a word would else be noticed after many minutes. rkt answers pings as often as they come.
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** One attempt to connect. `nothing`: nobody answers, or the signal has aborted. */
export async function dial({ address, timeoutMs, signal }: DialOptions): Promise<Dialled> {
  const client = new Client(address, credentials.createInsecure(), clientOptions);
  const request = GetInfoRequest.encode({}).finish();
  const { code, message, response } = await callUnary(client, getInfo, request, { timeoutMs, signal });
  const info = code === status.OK ? decoded(response) : undefined;
  if (info !== undefined && !signal.aborted) {
    const { rkt_version: version = "", global_flags } = info.info ?? {};
    const identity = global_flags?.dir || address;
    return { there: "rkt", connection: { ...connect(client, signal), info: response, identity, version } };
  }
  client.close();
  if (signal.aborted || awayCodes.has(code)) return { there: "nothing" };
  const reason = code === status.OK ? "its answer to GetInfo can't be read" : `${status[code]}: ${message}`;
  return { there: "stranger", reason };
}

const getInfo = PublicAPIService.getInfo.path;

/** A frozen server takes connections too. */
const awayCodes: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]);

function decoded(bytes: Buffer): GetInfoResponse | undefined {
  try {
    return GetInfoResponse.decode(bytes);
  } catch {
    return undefined;
  }
}

function connect(client: Client, left: AbortSignal): Pick<Connection, "signal" | "over" | "call" | "open"> {
  const over = Promise.withResolvers<string>();
  const life = new AbortController();
  const { signal } = life;

  function finish(reason: string): void {
    if (signal.aborted) return;
    left.removeEventListener("abort", leave);
    over.resolve(reason);
    life.abort();
    client.close();
  }

  // To hang up in the middle of a call does no harm to rkt.
  const leave = () => finish("the tap has left");
  left.addEventListener("abort", leave);

  // Between two looks nothing else would tell that the server is gone.
  const channel = client.getChannel();
  const lost = () => finish("the connection was lost");
  channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, lost);
  if (channel.getConnectivityState(false) !== connectivityState.READY) lost();

  return {
    signal,
    over: over.promise,
    call: async (path, request, timeoutMs) => {
      if (signal.aborted) return failed(status.CANCELLED, "the connection is over");
      const reply = await callUnary(client, path, request, { timeoutMs, signal });
      if (reply.code === status.UNAVAILABLE) finish(`UNAVAILABLE: ${reply.message}`);
      return reply;
    },
    open: (path, request) => {
      const stream = client.makeServerStreamRequest(path, same, same, Buffer.from(request));
      const cancel = () => stream.cancel();
      signal.addEventListener("abort", cancel);
      stream.on("status", () => signal.removeEventListener("abort", cancel));
      // The same as the status, but somebody has to listen.
      stream.on("error", () => {});
      return stream;
    },
  };
}
