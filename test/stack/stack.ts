import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { readConfig as readGatewayConfig } from "@tapedeck/gateway/config";
import { type Gateway, startGateway } from "@tapedeck/gateway/gateway";
import { readConfig as readIngestConfig } from "@tapedeck/ingest/config";
import { type Ingest, startIngest } from "@tapedeck/ingest/ingest";
import type { RecordingTimes } from "@tapedeck/ingest/record/recorder-options";
import { readConfig as readQueryConfig } from "@tapedeck/query/config";
import { type Query, startQuery } from "@tapedeck/query/query";
import { migrated } from "@tapedeck/query/testing/migrated";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { WorkspaceLogs } from "@tapedeck/shared/log/workspace-logs";
import { createLogger, type Logger, silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { inject } from "vitest";
import { type HttpAnswer, httpCall } from "./http-call.ts";

export type StackSource = {
  readonly developer?: string;
  readonly project?: string;
  readonly address: string;
  readonly redact?: "on" | "off";
};

/** A rkt host, with its settings as in tapedeck.yaml. */
export type StackHost = { readonly address: string; readonly developer?: string } & Readonly<Record<string, string>>;

export type StackOptions = {
  readonly skaffold?: readonly StackSource[];
  readonly rkt?: readonly StackHost[];
  readonly vagrant?: readonly StackSource[];
  readonly logger?: Logger;
  /** More settings, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Settings of one service alone. */
  readonly envOf?: Partial<Readonly<Record<"ingest" | "query" | "gateway", Readonly<Record<string, string>>>>>;
  /** The connection of the stack's own reader of the log, if NATS restricts access. */
  readonly connect?: () => Promise<NatsConnection>;
  /** Ingest's times; longer than by default where a test is not about them. */
  readonly times?: RecordingTimes;
  /** By default the stack starts its own servers, which end with it. */
  readonly servers?: StackServers;
};

/** Servers that outlive the services, so that services can be restarted on the same data. */
export type StackServers = {
  readonly nats: TestNats;
  /** The database's connection string. */
  readonly database: string;
};

export type FrameCounts = { readonly v1?: number; readonly v2?: number; readonly logs?: number };

/** An upstream's address, and what it has sent to its connected readers. */
export type SentFrames = { readonly address: string; readonly said: FrameCounts };

/** All of Tapedeck in one process, on a NATS and a database of its own, with every port chosen by the kernel. */
export type Stack = AsyncDisposable & {
  readonly source: SourceName;
  /** Gateway, "host:port". */
  readonly grpc: string;
  readonly http: string;
  /** The services and their NATS; each may be stopped before the stack is. */
  readonly parts: {
    readonly nats: TestNats;
    readonly ingest: Ingest;
    readonly query: Query;
    readonly gateway: Gateway;
  };
  /** The database's connection string. */
  readonly database: string;
  /** The log of the workspace that this Tapedeck has by itself. */
  readonly log: LogReader;
  /** The logs of all workspaces. */
  readonly logs: Pick<WorkspaceLogs, "of">;
  /** The health and metrics addresses of query and ingest, "host:port". */
  readonly queryHealth: string;
  readonly ingestHealth: string;
  /** Resolves when the first source's upstream is connected. */
  connected(): Promise<void>;
  /**
   * Resolves when the newest session of the first source holds that many frames of each channel, and query has folded
   * them.
   */
  recorded(frames: FrameCounts): Promise<void>;
  /** Resolves when the descriptions of a rkt host's pods and images are in the log, and query has folded them. */
  described(): Promise<void>;
  /**
   * Resolves when everything that the taps have emitted is in the log, and query has folded it. An upstream's messages
   * may still be in flight to the tap: waits for all messages of the given upstreams.
   */
  drained(...reported: readonly SentFrames[]): Promise<void>;
  /** Resolves when query has folded the whole log. */
  caughtUp(): Promise<void>;
  sessionEnded(): Promise<void>;
  events(): Promise<RecordedEvent[]>;
  httpLines(path: string, count: number): Promise<unknown[]>;
  httpCall(
    method: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<HttpAnswer>;
};

export async function startStack(options: StackOptions): Promise<Stack> {
  const { skaffold = [], rkt = [], vagrant = [], logger = testLogger(), env: more = {} } = options;
  await using cleanup = new AsyncDisposableStack();
  const nats = options.servers?.nats ?? cleanup.use(await startTestNats());
  const database = options.servers?.database ?? cleanup.use(await freshDatabase(migrated)).url;
  const sources = [
    ...skaffold.map((source) => ({ developer: "alice", project: "shop", upstream: "skaffold", ...source })),
    // A fake host has no other work, and a recording plays as fast as it is polled.
    ...rkt.map((host) => ({ developer: "h1", project: "host", upstream: "rkt", load: "100", ...host })),
    ...vagrant.map((source) => ({ developer: "alice", project: "shop", upstream: "vagrant", ...source })),
  ];
  const env: Record<string, string> = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_POSTGRES_URL: database,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_SOURCES: JSON.stringify(sources),
    TAPEDECK_INGEST_SPILL_DIR: await mkdtemp(join(inject("serversFolder"), "spill-")),
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_QUERY_GRPC_PORT: "0",
    TAPEDECK_QUERY_HEALTH_PORT: "0",
    TAPEDECK_GATEWAY_GRPC_PORT: "0",
    TAPEDECK_GATEWAY_HTTP_PORT: "0",
    // What is off by default has tests of its own.
    TAPEDECK_PRIVACY_COMPARE_DEVELOPERS: "true",
    ...more,
  };
  const { times = {}, envOf = {} } = options;
  const ingestConfig = readIngestConfig({ env: { ...env, ...envOf.ingest } });
  const ingest = cleanup.use(await startIngest({ ...ingestConfig, times }, logger));
  const query = cleanup.use(await startQuery(readQueryConfig({ env: { ...env, ...envOf.query } }), logger));
  const addresses = {
    TAPEDECK_QUERY_ADDRESS: query.addresses.grpc,
    TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
  };
  const gatewayConfig = readGatewayConfig({ env: { ...env, ...addresses, ...envOf.gateway } });
  const gateway = cleanup.use(await startGateway(gatewayConfig, logger));
  const dial = () => connect({ servers: nats.url });
  const connection = cleanup.adopt(await (options.connect ?? dial)(), (nc) => nc.close());
  const open = (workspace: string) => openLog(connection, { workspace, syncKnown: true, timeoutMs: 20_000 });
  const logs = cleanup.use(new WorkspaceLogs({ nats: connection, open }));
  const { workspace } = ingestConfig;
  const log = (await logs.of(workspace)).reader;

  const { developer, project, upstream } = sources[0] ?? { developer: "alice", project: "shop", upstream: "skaffold" };
  const source = sourceName({ workspace, developer, project, upstream });
  const sourceAt = (address: string) => {
    const found = sources.find((one) => one.address === address);
    if (found === undefined) throw new Error(`no source of this stack is at ${address}`);
    return sourceName({ workspace, ...found });
  };
  const grpc = gateway.addresses.grpc ?? "";
  const http = gateway.addresses.http ?? "";

  // Continues where the last call ended, because tests call this often.
  const seen = new Map<SourceName, RecordedEvent[]>();
  const eventsOf = async (one: SourceName) => {
    const before = seen.get(one) ?? [];
    seen.set(one, before);
    const subjects = [sourceFilter(one)];
    const last = await log.lastMatch(subjects);
    const afterOffset = before.at(-1)?.offset ?? logStart;
    if (mayHoldEvents(afterOffset, last)) {
      const over = new AbortController();
      for await (const recorded of log.history({ afterOffset, subjects }, last, over.signal)) before.push(recorded);
    }
    return before;
  };
  const events = () => eventsOf(source);
  const caughtUp = async () => {
    for (const name of await logs.names()) {
      const { lastOffset } = await (await logs.of(name)).reader.bounds();
      await until(() => query.positionOf(name) >= lastOffset, { message: "query to reach the log's end" });
    }
  };
  const frames = (recorded: readonly RecordedEvent[]) => {
    const session = recorded.findLast(({ event }) => event.kind === "session.started")?.event.session;
    const count = (channel: string) =>
      recorded.filter(({ event }) => event.session === session && event.channel === channel && event.part === 0).length;
    return { v1: count("v1"), v2: count("v2"), logs: count("logs") };
  };

  const inLog = (one: SourceName, expected: FrameCounts) =>
    until(
      async () => {
        const have = frames(await eventsOf(one));
        for (const channel of ["v1", "v2", "logs"] as const) {
          const want = expected[channel] ?? have[channel];
          if (have[channel] !== want) throw new Error(`${channel}: ${have[channel]} of ${want} frames`);
        }
        return true;
      },
      { message: `${one} to have frames ${JSON.stringify(expected)}` },
    );

  const owned = cleanup.move();
  return {
    source,
    grpc,
    http,
    parts: { nats, ingest, query, gateway },
    database,
    log,
    logs,
    queryHealth: query.addresses.health,
    ingestHealth: ingest.addresses.health,
    events,
    caughtUp,
    async connected() {
      await until(async () => (await events()).some(({ event }) => event.kind === "upstream.connected"), {
        message: "the upstream to be connected",
      });
    },
    async recorded(expected) {
      await inLog(source, expected);
      await caughtUp();
    },
    async described() {
      await until(
        async () => {
          const seen = (await events()).flatMap(({ event }) =>
            event.kind === "inventory.described" ? [event.channel] : [],
          );
          return new Set(seen).size === 2;
        },
        { message: "pods and images to be described" },
      );
      await caughtUp();
    },
    async drained(...reported) {
      for (const { address, said } of reported) await inLog(sourceAt(address), said);
      const isRecorded = () => ingest.status().every(({ waiting }) => waiting === 0);
      await until(isRecorded, { message: "all that was seen to be in the log" });
      await caughtUp();
    },
    async sessionEnded() {
      await until(async () => (await events()).some(({ event }) => event.kind === "session.ended"), {
        message: "the session to end",
      });
      await caughtUp();
    },
    async httpLines(path, count) {
      if (count === 0) return [];
      const over = new AbortController();
      const response = await fetch(`http://${http}${path}`, { signal: over.signal });
      const lines: unknown[] = [];
      let rest = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts.map((part) => JSON.parse(part) as unknown));
        if (lines.length >= count) break;
      }
      over.abort();
      return lines;
    },
    httpCall: (method, path, headers, body) => httpCall(http, method, path, headers, body),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Settings of a further gateway on this stack's NATS, query and ingest. */
export function gatewayEnv({ nats, query, ingest }: Pick<Stack["parts"], "nats" | "query" | "ingest">) {
  return {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_QUERY_ADDRESS: query.addresses.grpc,
    TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_WORKSPACE: "acme",
    TAPEDECK_GATEWAY_GRPC_PORT: "0",
    TAPEDECK_GATEWAY_HTTP_PORT: "0",
  };
}

function testLogger(): Logger {
  return process.env.TAPEDECK_TEST_LOG === undefined ? silentLogger : createLogger("test");
}
