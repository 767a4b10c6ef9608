import { timingSafeEqual } from "node:crypto";
import { type EventEmitter, once } from "node:events";
import { type handleServerStreamingCall, type handleUnaryCall, type Metadata, Server } from "@grpc/grpc-js";
import {
  type HistoryRequest,
  QueryService,
  type RebuildRequest,
  type RebuildResponse,
} from "@tapedeck/proto/tapedeck/v1/query";
import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { type ConnectionLimits, listenGrpc } from "@tapedeck/shared/service/grpc-listener";
import type { Certificate } from "@tapedeck/shared/service/tls/certificate";
import { serverCredentials } from "@tapedeck/shared/service/tls/grpc-credentials";
import { callOver } from "@tapedeck/shared/sync/call-over";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type { ReaderLimits } from "../db/access/limits.ts";
import { isDatabaseAway, isStatementTimeout } from "../db/away.ts";
import type { Database } from "../db/database.ts";
import { text } from "../db/text.ts";
import { folds } from "../views/folds.ts";
import type { ApiDeps, CallScope, RebuildTables } from "./deps.ts";
import { exportTables } from "./export/export-tables.ts";
import { findEvents } from "./find-events.ts";
import { listOperations } from "./list-operations.ts";
import { listSessions } from "./list-sessions.ts";
import { listSources } from "./list-sources.ts";
import { search } from "./search/search.ts";
import { runSql } from "./sql/run-sql.ts";
import { stateReader } from "./state/read-state.ts";
import { buildStats } from "./stats/build-stats.ts";
import { stats } from "./stats/stats.ts";
import { position } from "./tables/position.ts";
import { rebuildCall } from "./tables/rebuild-call.ts";
import { setAside } from "./tables/set-aside.ts";
import { workspaces } from "./tables/workspaces.ts";

/** What answers about a workspace are made from; empty: about all. */
export type DepsOf = (workspace: string) => Promise<ApiDeps>;

export type ApiOptions = {
  readonly host: string;
  readonly port: number;
  readonly connectionLimits: ConnectionLimits;
  /** Undefined: plaintext. */
  readonly certificate: Certificate | undefined;
  /** The services' shared key; empty: callers are not authenticated. */
  readonly key: string;
  /** The longest time that a call may take. */
  readonly timeoutMs: number;
  /** Those of logins for SQL. */
  readonly readers: ReaderLimits;
  /** Throws `not_ready` while the database is unavailable. */
  readonly database: () => Database;
  readonly rebuild: RebuildTables;
  /** Why a workspace is not projected now; empty: it is. */
  readonly waitsFor: (workspace: string) => string;
  /** The name by which other queries know this one; empty: the default one. */
  readonly name: string;
  /** Receives the cause of an error that callers see only as "internal error". */
  readonly onError: (method: string, cause: unknown) => void;
};

export type QueryServer = AsyncDisposable & { readonly address: string; readonly port: number };

/** The additional time for a call to end by itself at its limit, because then it reports a more precise error. */
const graceMs = 1_000;

export async function startApi(depsOf: DepsOf, options: ApiOptions): Promise<QueryServer> {
  const { host, port } = options;
  const server = new Server({
    "grpc.max_receive_message_length": 1024 * 1024,
    "grpc.max_send_message_length": -1,
  });
  const calls = new AnsweredCalls(depsOf, options);
  server.addService(QueryService, {
    readState: calls.stream("ReadState", own, stateReader(folds)),
    listSources: calls.unary("ListSources", own, listSources),
    listSessions: calls.unary("ListSessions", own, listSessions),
    listOperations: calls.unary("ListOperations", own, listOperations),
    search: calls.unary("Search", ofFilter, search),
    buildStats: calls.unary("BuildStats", own, buildStats),
    stats: calls.unary("Stats", ({ of }) => of?.workspace ?? "", stats),
    findEvents: calls.unary("FindEvents", ofFilter, findEvents),
    position: calls.unary("Position", own, position),
    runSql: calls.unary("RunSql", own, runSql(options)),
    // It takes as long as its client reads. The rows of each day have a limit.
    exportTables: calls.stream("ExportTables", own, exportTables(options.readers), Number.POSITIVE_INFINITY),
    setAside: calls.unary("SetAside", own, setAside),
    // Also of a workspace whose tables are not answered from.
    workspaces: calls.unary("Workspaces", () => "", workspaces(options)),
    rebuild: calls.rebuild(),
  });
  const { port: bound, ...listener } = await listenGrpc(
    server,
    { host, port, credentials: serverCredentials(options.certificate) },
    options.connectionLimits,
  );
  return { ...listener, address: `${host}:${bound}`, port: bound };
}

/** The workspace that a request is about. */
type WorkspaceOf<Request> = (request: Request) => string;

const own: WorkspaceOf<{ readonly workspace: string }> = ({ workspace }) => workspace;
const ofFilter: WorkspaceOf<Pick<HistoryRequest, "filter">> = ({ filter }) => filter?.workspace ?? "";

type Handle<Request, Answer> = (deps: ApiDeps, request: Request, scope: CallScope) => Answer;

/** Checks the key of each call, ends it in time, and turns what it throws into a status. */
class AnsweredCalls {
  readonly #depsOf: DepsOf;
  readonly #options: ApiOptions;

  constructor(depsOf: DepsOf, options: ApiOptions) {
    this.#depsOf = depsOf;
    this.#options = options;
  }

  unary<Request, Response>(
    method: string,
    workspaceOf: WorkspaceOf<Request>,
    handle: Handle<Request, Promise<Response>>,
  ): handleUnaryCall<Request, Response> {
    const { key, timeoutMs } = this.#options;
    return (call, callback) => {
      const run = async (scope: CallScope) => {
        assertKey(call.metadata, key);
        return handle(await this.#depsOf(text(workspaceOf(call.request))), call.request, scope);
      };
      inTime(call, { timeoutMs, late: this.#lateness() }, run).then(
        (response) => callback(null, response),
        (cause: unknown) => callback(this.#status(method, cause)),
      );
    };
  }

  stream<Request, Response>(
    method: string,
    workspaceOf: WorkspaceOf<Request>,
    handle: Handle<Request, AsyncIterable<Response>>,
    timeoutMs = this.#options.timeoutMs,
  ): handleServerStreamingCall<Request, Response> {
    const { key } = this.#options;
    return (call) => {
      const run = async (scope: CallScope) => {
        assertKey(call.metadata, key);
        const deps = await this.#depsOf(text(workspaceOf(call.request)));
        for await (const message of handle(deps, call.request, scope)) {
          if (scope.signal.aborted) throw tooLong();
          if (!call.write(message)) await drained(call, scope);
        }
        call.end();
      };
      inTime(call, { timeoutMs, late: this.#lateness() }, run).catch((cause: unknown) =>
        call.emit("error", this.#status(method, cause)),
      );
    };
  }

  /** A rebuild has no time limit, because its caller sees the progress. */
  rebuild(): handleServerStreamingCall<RebuildRequest, RebuildResponse> {
    const { key, rebuild } = this.#options;
    return (call) => {
      const left = new AbortController();
      call.once("cancelled", () => left.abort(callOver));
      const run = async () => {
        assertKey(call.metadata, key);
        for await (const message of rebuildCall(rebuild, call.request, left.signal)) call.write(message);
        call.end();
      };
      run().catch((cause: unknown) => call.emit("error", this.#status("Rebuild", cause)));
    };
  }

  /**
   * Postgres itself ends a statement in time, and says so. If it has said nothing since the call began, it is not the call that
   * takes too long.
   */
  #lateness(): () => TapedeckError {
    const startedAt = performance.now();
    return () => {
      const isSilent = this.#options.database().heardAt() < startedAt;
      return isSilent ? new TapedeckError("not_ready", "Postgres does not answer: try again in a moment") : tooLong();
    };
  }

  #status(method: string, cause: unknown) {
    const error = asTapedeckError(cause);
    if (error.code === "internal") this.#options.onError(method, cause);
    return toGrpcStatus(error);
  }
}

function assertKey(metadata: Metadata, key: string): void {
  if (key === "") return;
  const receivedKey = Buffer.from(String(metadata.get("tapedeck-key")[0] ?? ""));
  const expected = Buffer.from(key);
  if (receivedKey.length === expected.length && timingSafeEqual(receivedKey, expected)) return;
  throw new TapedeckError(
    "unauthenticated",
    "query answers only Tapedeck's own services: tapedeck-key is missing or wrong",
  );
}

/** Timers that are cleared: signals with a timeout of their own would be kept until then, long after most calls. */
async function inTime<T>(
  call: { once(event: "cancelled", listener: () => void): unknown },
  { timeoutMs, late: lateness }: { readonly timeoutMs: number; readonly late: () => TapedeckError },
  answer: (scope: CallScope) => Promise<T>,
): Promise<T> {
  const left = new AbortController();
  call.once("cancelled", () => left.abort(callOver));
  const late = Promise.withResolvers<never>();
  const timers = [
    startTimer(() => left.abort(callOver), timeoutMs),
    startTimer(() => late.reject(lateness()), timeoutMs + graceMs),
  ];
  try {
    return await Promise.race([answer({ signal: left.signal }), late.promise]);
  } finally {
    for (const timer of timers) stopTimer(timer);
  }
}

function tooLong(cause?: unknown): TapedeckError {
  return new TapedeckError(
    "limit_exceeded",
    "this takes too long: narrow the request, for example to a shorter time",
    {},
    { cause },
  );
}

/** Waits until the send window has room again. */
async function drained(call: EventEmitter, { signal }: CallScope): Promise<void> {
  try {
    await once(call, "drain", { signal });
  } catch (cause) {
    throw tooLong(cause);
  }
}

function asTapedeckError(cause: unknown): TapedeckError {
  if (isDatabaseAway(cause)) {
    return new TapedeckError("not_ready", "the database is unavailable: try again in a moment", {}, { cause });
  }
  if (isStatementTimeout(cause)) return tooLong(cause);
  return fromUnknown(cause);
}
