import { doorLimits } from "@tapedeck/shared/service/grpc-listener";
import { queryPatience } from "@tapedeck/shared/service/query-patience";
import { type SettingsReader, settingsReader } from "@tapedeck/shared/service/settings";

/** Every bound on what callers may ask of this process; bytes, milliseconds, counts. */
export type Limits = {
  readonly grpc: {
    /** The largest message of a client. */
    readonly messageBytes: number;
    /** Calls at once on one connection; HTTP/2 lets the rest wait at the client. */
    readonly streams: number;
    /** TCP connections of one listener. */
    readonly connections: number;
  };
  readonly http: {
    readonly bodyBytes: number;
    readonly headerBytes: number;
    /** TCP connections of one listener, event streams and WebSockets included. */
    readonly connections: number;
  };
  readonly webSocket: { readonly messageBytes: number; readonly subscriptions: number };
  /** Live streams and sockets at once, per token and address. */
  readonly connections: PerCaller;
  /** Live streams and sockets of one token at all addresses together. */
  readonly tokenConnections: number;
  /** HTTP requests, gRPC calls and WebSocket messages together. */
  readonly requestsPerSecond: PerCaller;
  /** Requests with an unknown token, or without a required one, per address. */
  readonly refusalsPerMinute: number;
  /** How long a request may take to arrive, and the first of a connection to begin. */
  readonly arrivalMs: number;
  /** How long query may take for an answer. */
  readonly queryMs: number;
  /** Bytes that may wait for the peer of one socket or stream to read them. */
  readonly unreadBytes: number;
  /** History readers that read the log at once. */
  readonly historyReaders: number;
  /** Pages of events that are assembled at once. */
  readonly pages: number;
  /** Answers of tens of MiB that are assembled at once. */
  readonly largeAnswers: number;
};

/**
 * The limit of one caller. A caller is a token, or an address at an endpoint that is open to callers without a token.
 * Without authentication a caller is an address, but only when the limit is set: everyone then comes from this machine or
 * through the same proxy, and would be one caller.
 */
export type PerCaller = { readonly most: number; readonly holdsForAddresses: boolean };

const KiB = 1024;
const MiB = 1024 * KiB;

export function limitSettings(read: SettingsReader): Limits {
  const atLeast = (min: number) => ({ min });
  const perCaller = (key: string, most: number): PerCaller => {
    const set = read.integer(key, undefined, atLeast(1));
    return { most: set ?? most, holdsForAddresses: set !== undefined };
  };
  const { connections, arrivalMs } = doorLimits(read);
  return {
    grpc: {
      connections,
      messageBytes: read.integer("limits.grpc.messageBytes", 4 * MiB, atLeast(KiB)),
      streams: read.integer("limits.grpc.streams", 100, atLeast(1)),
    },
    http: {
      bodyBytes: read.integer("limits.http.bodyBytes", 4 * MiB, atLeast(KiB)),
      headerBytes: read.integer("limits.http.headerBytes", 16 * KiB, atLeast(KiB)),
      connections: read.integer("limits.http.connections", 10_000, atLeast(1)),
    },
    webSocket: {
      messageBytes: read.integer("limits.webSocket.messageBytes", 256 * KiB, atLeast(KiB)),
      subscriptions: read.integer("limits.webSocket.subscriptions", 64, atLeast(1)),
    },
    connections: perCaller("limits.connections", 50),
    tokenConnections: read.integer("limits.tokenConnections", 1_000, atLeast(1)),
    requestsPerSecond: perCaller("limits.requestsPerSecond", 100),
    refusalsPerMinute: read.integer("limits.refusalsPerMinute", 60, atLeast(1)),
    arrivalMs,
    queryMs: queryPatience(read),
    unreadBytes: read.integer("limits.unreadBytes", MiB, atLeast(KiB)),
    historyReaders: read.integer("limits.historyReaders", 256, atLeast(1)),
    pages: read.integer("limits.pages", 32, atLeast(1)),
    largeAnswers: read.integer("limits.largeAnswers", 8, atLeast(1)),
  };
}

export const defaultLimits: Limits = limitSettings(settingsReader({ env: {} }));
