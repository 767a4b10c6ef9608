import { connectionLimits } from "@tapedeck/shared/service/grpc-listener";
import { queryTimeout } from "@tapedeck/shared/service/query-timeout";
import type { SettingAbout } from "@tapedeck/shared/service/setting-definition";
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
export type PerCaller = { readonly max: number; readonly holdsForAddresses: boolean };

const KiB = 1024;
const MiB = 1024 * KiB;

const oneOrMore = { min: 1 };
const aKiBOrMore = { min: KiB, unit: "bytes" } as const;

export function limitSettings(read: SettingsReader): Limits {
  const { connections, arrivalMs } = connectionLimits(read);
  return {
    grpc: { connections, ...grpcLimits(read) },
    http: httpLimits(read),
    webSocket: webSocketLimits(read),
    ...tokenLimits(read),
    arrivalMs,
    queryMs: queryTimeout(read),
    ...readingLimits(read),
  };
}

function grpcLimits(read: SettingsReader): Omit<Limits["grpc"], "connections"> {
  return {
    messageBytes: read.integer("limits.grpc.messageBytes", 4 * MiB, {
      ...aKiBOrMore,
      description: "A client's gRPC message.",
      past: "RESOURCE_EXHAUSTED, in grpc-js's own words",
    }),
    streams: read.integer("limits.grpc.streams", 100, {
      ...oneOrMore,
      description: "Calls at the same time on one gRPC connection.",
      past: "The next call waits.",
    }),
  };
}

function httpLimits(read: SettingsReader): Limits["http"] {
  return {
    bodyBytes: read.integer("limits.http.bodyBytes", 4 * MiB, {
      ...aKiBOrMore,
      description: "The body of an HTTP request.",
      past: "`limit_exceeded`",
    }),
    headerBytes: read.integer("limits.http.headerBytes", 16 * KiB, {
      ...aKiBOrMore,
      description: "The path and headers of an HTTP request.",
      past: "`limit_exceeded` with status 431",
    }),
    connections: read.integer("limits.http.connections", 10_000, {
      ...oneOrMore,
      description: "TCP connections of one HTTP listener, streams and WebSockets included.",
      past: "The connection is closed at once.",
    }),
  };
}

function webSocketLimits(read: SettingsReader): Limits["webSocket"] {
  return {
    messageBytes: read.integer("limits.webSocket.messageBytes", 256 * KiB, {
      ...aKiBOrMore,
      description: "A client's WebSocket message.",
      past: "The socket is closed with 1009.",
    }),
    subscriptions: read.integer("limits.webSocket.subscriptions", 64, {
      ...oneOrMore,
      description: "Subscriptions of one WebSocket.",
      past: "The socket is closed with 4429.",
    }),
  };
}

type TokenLimits = Pick<Limits, "connections" | "tokenConnections" | "requestsPerSecond" | "refusalsPerMinute">;

function tokenLimits(read: SettingsReader): TokenLimits {
  const perCaller = (key: string, max: number, about: SettingAbout): PerCaller => {
    const set = read.integer(key, undefined, { ...oneOrMore, defaultText: `\`${max}\``, ...about });
    return { max: set ?? max, holdsForAddresses: set !== undefined };
  };
  const refused = "`limit_exceeded` with `Retry-After`. A WebSocket gets the error and is closed with 4429.";
  return {
    connections: perCaller("limits.connections", 50, {
      description:
        "Live streams, sockets and pushes of a token at one address. Behind a proxy all callers have the proxy's address.",
      past: refused,
    }),
    tokenConnections: read.integer("limits.tokenConnections", 1_000, {
      ...oneOrMore,
      description: "Live streams and sockets of a token at all addresses together.",
      past: refused,
    }),
    requestsPerSecond: perCaller("limits.requestsPerSecond", 100, {
      description: "HTTP requests, gRPC calls and WebSocket messages of a token in one second.",
      past: "`limit_exceeded` with `Retry-After` and `RateLimit-*`. A WebSocket gets the error and is not read for a second.",
    }),
    refusalsPerMinute: read.integer("limits.refusalsPerMinute", 60, {
      ...oneOrMore,
      description: "Requests of an address without a good token, in one minute.",
      past: "`limit_exceeded` in place of `unauthenticated`",
    }),
  };
}

function readingLimits(
  read: SettingsReader,
): Pick<Limits, "unreadBytes" | "historyReaders" | "pages" | "largeAnswers"> {
  const waits = "The request waits its turn, for `limits.query` at most.";
  return {
    unreadBytes: read.integer("limits.unreadBytes", MiB, {
      ...aKiBOrMore,
      description: "Bytes that wait unread for one socket or stream.",
      past: "Nothing: the reader continues with history at its own pace.",
    }),
    historyReaders: read.integer("limits.historyReaders", 256, {
      ...oneOrMore,
      description: "Readers of history that read the log at the same time.",
      past: "The reader waits its turn.",
    }),
    pages: read.integer("limits.pages", 32, {
      ...oneOrMore,
      description: "Pages of events that are produced at the same time.",
      past: waits,
    }),
    largeAnswers: read.integer("limits.largeAnswers", 8, {
      ...oneOrMore,
      description: "Answers of tens of MiB that are produced at the same time.",
      past: waits,
    }),
  };
}

export const defaultLimits: Limits = limitSettings(settingsReader({ env: {} }));
