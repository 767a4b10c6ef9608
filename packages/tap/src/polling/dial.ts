import { Client, type ClientOptions, credentials, type Metadata, status } from "@grpc/grpc-js";
import { callUnary } from "../unary-call.ts";
import { PolledConnection } from "./connection.ts";

/** The differences between polled upstreams when they are dialled. */
export type PolledServer = {
  /** Completes "no …" for something else that listens there. */
  readonly name: string;
  readonly clientOptions: ClientOptions;
  /** Goes with every call. */
  readonly metadata?: Metadata;
  /** A call that only this server answers with a message that `identify` can read. */
  readonly proof: { readonly name: string; readonly path: string; readonly request: Uint8Array };
  /** Throws for an answer that can't be read. */
  readonly identify: (answer: Buffer) => ServerIdentity;
};

export type ServerIdentity = {
  /** Distinguishes one process or host behind an address from another. */
  readonly identity: string;
  readonly version: string;
};

export type Dialled =
  | ({ readonly there: "server" } & DialledServer)
  /** Another kind of server, and how it answered. */
  | { readonly there: "stranger"; readonly reason: string }
  /** No answer, or the signal has aborted. */
  | { readonly there: "nothing" };

export type DialledServer = ServerIdentity & {
  readonly connection: PolledConnection;
  /** The answer that proved it, as it came. */
  readonly info: Buffer;
};

export type DialOptions = {
  readonly address: string;
  /** For the answer that proves the server. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

/** Every polled connection has its own channel: a call on a lost one must not continue with the next server. */
const commonOptions: ClientOptions = {
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
};

/** A frozen server takes connections, too. */
const awayCodes: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]);

/** Makes one attempt to connect. */
export async function dial(server: PolledServer, { address, timeoutMs, signal }: DialOptions): Promise<Dialled> {
  const client = new Client(address, credentials.createInsecure(), { ...commonOptions, ...server.clientOptions });
  const { proof, metadata } = server;
  const answer = await callUnary(client, proof.path, proof.request, {
    timeoutMs,
    signal,
    ...(metadata && { metadata: metadata.clone() }),
  });
  const identity = answer.code === status.OK ? identityIn(server, answer.response) : undefined;
  if (identity !== undefined && !signal.aborted) {
    const connection = new PolledConnection(client, { leaving: signal, ...(metadata && { metadata }) });
    return { there: "server", connection, info: answer.response, ...identity };
  }
  client.close();
  if (signal.aborted || awayCodes.has(answer.code)) return { there: "nothing" };
  const isUnreadable = answer.code === status.OK;
  const reason = isUnreadable
    ? `its answer to ${proof.name} can't be read`
    : `${status[answer.code]}: ${answer.message}`;
  return { there: "stranger", reason };
}

function identityIn({ identify }: PolledServer, answer: Buffer): ServerIdentity | undefined {
  try {
    return identify(answer);
  } catch {
    return undefined;
  }
}
