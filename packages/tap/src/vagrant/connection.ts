import { Client, type ClientReadableStream, connectivityState, credentials, Metadata, status } from "@grpc/grpc-js";
import { GetVersionInfoResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { callUnary, failed, type Reply, same } from "../polling/unary-call.ts";

export type DialOptions = {
  readonly address: string;
  /** For an answer that proves that Vagrant is there, in ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

export type Dialled =
  | { readonly there: "vagrant"; readonly connection: Connection }
  /** Something that is not Vagrant's server, and how it answered. */
  | { readonly there: "stranger"; readonly reason: string }
  | { readonly there: "nothing" };

export type Connection = {
  /** hashicorp.vagrant.GetVersionInfoResponse, as it came. */
  readonly info: Buffer;
  /** "2.3.7"; empty if it does not say. */
  readonly version: string;
  /** Aborts when the connection is lost or left: nothing can be asked any more. */
  readonly signal: AbortSignal;
  /** Resolves when it is lost or left, with why. */
  readonly over: Promise<string>;
  /** Never rejects. An answer of UNAVAILABLE is the end of the connection. */
  readonly call: (path: string, request: Uint8Array, timeoutMs: number) => Promise<Reply>;
  /** As `call`, but waits for the answer also of a server that has said goodbye. UNAVAILABLE if it can't come. */
  readonly control: Connection["call"];
  /** A stream may have more to give when the connection is over already. */
  readonly open: (path: string, request: Uint8Array) => ClientReadableStream<Buffer>;
  /** Ends the streams that are still open. */
  readonly close: () => void;
};

const clientOptions = {
  // A list has all jobs with their results: tens of KB for each that set a project up.
  "grpc.max_receive_message_length": 64 * 1024 * 1024,
  "grpc.max_send_message_length": -1,
  // The server drops the output that we are late for when a job ends, so it must not have to wait for us.
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
  // A connection of its own each time: what was asked on one that is lost must not go on with the next server.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
  // The server hangs up on clients that ping more often than every five minutes.
  "grpc.keepalive_time_ms": 360_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** One attempt to connect. `nothing`: nobody answers, or the signal has aborted. */
export async function dial({ address, timeoutMs, signal }: DialOptions): Promise<Dialled> {
  const client = new Client(address, credentials.createInsecure(), clientOptions);
  const { code, message, response } = await callUnary(client, getVersionInfo, nothing, {
    timeoutMs,
    signal,
    metadata: protocol(),
  });
  const version = code === status.OK ? versionOf(response) : undefined;
  if (version !== undefined && !signal.aborted) {
    return { there: "vagrant", connection: { ...connect(client, signal), info: response, version } };
  }
  client.close();
  if (signal.aborted || awayCodes.has(code)) return { there: "nothing" };
  const reason = code === status.OK ? "its answer to GetVersionInfo can't be read" : `${status[code]}: ${message}`;
  return { there: "stranger", reason };
}

const getVersionInfo = VagrantService.getVersionInfo.path;
const nothing = Buffer.alloc(0);

/** A frozen server takes connections too. */
const awayCodes: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]);

function versionOf(answer: Buffer): string | undefined {
  try {
    return GetVersionInfoResponse.decode(answer).info?.version ?? "";
  } catch {
    return undefined;
  }
}

function connect(client: Client, left: AbortSignal): Omit<Connection, "info" | "version"> {
  const over = Promise.withResolvers<string>();
  const life = new AbortController();
  const closing = new AbortController();
  const { signal } = life;

  function finish(reason: string): void {
    if (signal.aborted) return;
    left.removeEventListener("abort", leave);
    over.resolve(reason);
    life.abort();
  }

  function close(): void {
    if (closing.signal.aborted) return;
    closing.abort();
    client.close();
  }

  // To hang up in the middle of a call or a stream does no harm to Vagrant.
  const leave = () => {
    finish("the tap has left");
    close();
  };
  left.addEventListener("abort", leave);

  // Between two looks nothing else would tell that the server is gone, or that it says goodbye.
  const channel = client.getChannel();
  const lost = () => finish("the connection was lost");
  channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, lost);
  if (channel.getConnectivityState(false) !== connectivityState.READY) lost();

  return {
    signal,
    over: over.promise,
    call: async (path, request, timeoutMs) => {
      if (signal.aborted) return failed(status.CANCELLED, "the connection is over");
      const reply = await callUnary(client, path, request, { timeoutMs, signal, metadata: protocol() });
      if (reply.code === status.UNAVAILABLE) finish(`UNAVAILABLE: ${reply.message}`);
      return reply;
    },
    control: async (path, request, timeoutMs) => {
      const unanswered = failed(status.UNAVAILABLE, "the connection ended before the answer came");
      if (closing.signal.aborted) return unanswered;
      const reply = await callUnary(client, path, request, { timeoutMs, signal: closing.signal, metadata: protocol() });
      return closing.signal.aborted && reply.code === status.CANCELLED ? unanswered : reply;
    },
    open: (path, request) => {
      const stream = client.makeServerStreamRequest(path, same, same, Buffer.from(request), protocol());
      const cancel = () => stream.cancel();
      closing.signal.addEventListener("abort", cancel);
      stream.on("status", () => closing.signal.removeEventListener("abort", cancel));
      // The same as the status, but somebody has to listen.
      stream.on("error", () => {});
      return stream;
    },
    close,
  };
}

/** What every method but GetVersionInfo needs beside its request: the versions of the API that we speak. */
function protocol(): Metadata {
  const metadata = new Metadata();
  metadata.set("client-api-protocol", "1,1");
  return metadata;
}
