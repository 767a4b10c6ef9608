import {
  Client,
  type ClientReadableStream,
  connectivityState,
  credentials,
  type StatusObject,
  status,
} from "@grpc/grpc-js";

const clientOptions = {
  // An event can be larger than the default of 4 MiB.
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  // Messages that the tap's event loop is late for wait here and not in Skaffold.
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
  // Each process gets its own connection and shares nothing with an earlier one. There is no keepalive, because Skaffold
  // hangs up on clients that ping more often than every five minutes.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  // For a port that opens, closes and opens again during the connect.
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 100,
  // Never goes through an HTTP proxy, and never hangs up by itself when nothing is requested for a while.
  "grpc.enable_http_proxy": 0,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
};

const connectMs = 2_000;

/** Connects to Skaffold. Undefined if nothing there speaks gRPC, or when the signal aborts first. */
export async function connectClient(address: string, signal: AbortSignal): Promise<Client | undefined> {
  const client = new Client(address, credentials.createInsecure(), clientOptions);
  if ((await isReady(client, signal)) && !signal.aborted) return client;
  client.close();
  return undefined;
}

function isReady(client: Client, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const giveUp = () => resolve(false);
    signal.addEventListener("abort", giveUp, { once: true });
    client.waitForReady(Date.now() + connectMs, (error) => {
      signal.removeEventListener("abort", giveUp);
      resolve(error === undefined);
    });
  });
}

export function isConnected(client: Client): boolean {
  return client.getChannel().getConnectivityState(false) === connectivityState.READY;
}

/** Resolves when the connection is lost. */
export function connectionLost(client: Client): Promise<void> {
  const channel = client.getChannel();
  return new Promise((resolve) =>
    channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, () => resolve()),
  );
}

/** Resolves with the stream's status after all messages before it were read. */
export async function statusOf(stream: ClientReadableStream<Buffer>): Promise<StatusObject> {
  const drained = new Promise((resolve) => stream.on("end", resolve));
  // The error repeats the status, but an error without a listener would end the process.
  stream.on("error", () => {});
  const end = await new Promise<StatusObject>((resolve) => stream.on("status", resolve));
  await drained;
  return end;
}

/** True for an API that the server refuses: old servers lack v2, and text that is not UTF-8 breaks v2 for the rest of a process. */
export function isRefusal({ code, details }: StatusObject): boolean {
  return code === status.UNIMPLEMENTED || (code === status.INTERNAL && details.includes("UTF-8"));
}
