import { type ChannelCredentials, Client, credentials, Metadata } from "@grpc/grpc-js";
import type {
  ListOperationsResponse,
  ListSessionsResponse,
  ListSourcesResponse,
  SearchResponse,
} from "@tapedeck/proto/tapedeck/v1/lists";
import {
  BuildStatsRequest,
  type BuildStatsResponse,
  type ExportRequest,
  type FindEventsRequest,
  type FindEventsResponse,
  type HistoryRequest,
  ListRequest,
  type PositionResponse,
  QueryService,
  ReadStateRequest,
  type ReadStateResponse,
  type RunSqlRequest,
  type RunSqlResponse,
  type SetAsideResponse,
  type StateHead,
  type StatsResponse,
  type WorkspacesResponse,
} from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";

/** State of a session at a position; rows as the upstream's own messages. */
export type ReadState = { readonly head: StateHead; readonly rows: readonly CollectionRow[] };

/** `position`: of the event that made the row; absent when it is that of the head. */
type CollectionRow = {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly position?: string;
  /** Absent where only one was asked for. */
  readonly collection?: string;
};

/** Calls to query. Every failure is a TapedeckError; query away is `not_ready`. */
export type QueryClient = AsyncDisposable & {
  readState(request: Partial<ReadStateRequest>): Promise<ReadState>;
  listSources(request: Partial<ListRequest>): Promise<ListSourcesResponse>;
  listSessions(request: Partial<ListRequest>): Promise<ListSessionsResponse>;
  listOperations(request: Partial<ListRequest>): Promise<ListOperationsResponse>;
  search(request: HistoryRequest): Promise<SearchResponse>;
  buildStats(request: Partial<BuildStatsRequest>): Promise<BuildStatsResponse>;
  stats(about: string, of: Partial<BuildStatsRequest>): Promise<StatsResponse>;
  findEvents(request: FindEventsRequest): Promise<FindEventsResponse>;
  runSql(request: RunSqlRequest): Promise<RunSqlResponse>;
  /** Encoded messages, tapedeck.v1.ExportTablesResponse, at the pace of their reader. */
  exportTables(request: ExportRequest, signal: AbortSignal): AsyncIterable<Buffer>;
  /**
   * Without a workspace: only whether query answers. `current`: waits up to 2 s until the tables have the end that the log
   * has now.
   */
  position(workspace?: string, current?: boolean): Promise<PositionResponse>;
  /** `workspace`: empty for all. */
  setAside(workspace: string): Promise<SetAsideResponse>;
  /** What the tables have of each workspace; `workspace`: empty for all. */
  workspaces(workspace: string): Promise<TablesOfWorkspaces>;
};

export type TablesOfWorkspaces = WorkspacesResponse & {
  /** Whether the query that has a workspace did not answer; by default all queries did. */
  readonly isUnknown?: (workspace: string) => boolean;
};

/** Query itself answers when its patience ends. This much longer is waited for a query that hangs. */
const graceMs = 5_000;

/** The server of grpc-js counts in 32 bits: with a deadline of more than 24.8 days a call is over at once. */
const maxDeadlineMs = 24 * 86_400_000;

/** `timeoutMs`: how long query may take for an answer. */
export function queryClient(
  address: string,
  key: string,
  timeoutMs: number,
  channelCredentials?: ChannelCredentials,
): QueryClient {
  const client = new Client(address, channelCredentials ?? credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    // With the default, an export of tables waits for the gateway's answer every 64 KiB.
    "grpc-node.flow_control_window": 4 * 1024 * 1024,
  });
  const metadata = () => {
    const md = new Metadata();
    md.set("tapedeck-key", key);
    return md;
  };
  const deadlineMs = Math.min(timeoutMs + graceMs, maxDeadlineMs);
  const options = () => ({ deadline: Date.now() + deadlineMs });

  const unary = <Request, Response>(
    method: { path: string; requestSerialize: (r: Request) => Buffer; responseDeserialize: (b: Buffer) => Response },
    request: Request,
  ) =>
    new Promise<Response>((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata(),
        options(),
        (error, response) => {
          if (error !== null) reject(clientError(error));
          else if (response === undefined) reject(new Error(`${method.path} answered without a message`));
          else resolve(response);
        },
      );
    });

  return {
    async readState(request) {
      const method = QueryService.readState;
      const call = client.makeServerStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        { ...ReadStateRequest.create(), ...request },
        metadata(),
        options(),
      );
      let head: StateHead | undefined;
      const rows: CollectionRow[] = [];
      try {
        for await (const { body } of call as AsyncIterable<ReadStateResponse>) {
          if (body?.$case === "head") head = body.value;
          else if (body?.$case === "row") rows.push(body.value);
        }
      } catch (error) {
        throw clientError(error);
      }
      if (head === undefined) throw new Error("ReadState answered without a head");
      return { head, rows };
    },
    listSources: (request) => unary(QueryService.listSources, { ...ListRequest.create(), ...request }),
    listSessions: (request) => unary(QueryService.listSessions, { ...ListRequest.create(), ...request }),
    listOperations: (request) => unary(QueryService.listOperations, { ...ListRequest.create(), ...request }),
    search: (request) => unary(QueryService.search, request),
    buildStats: (request) => unary(QueryService.buildStats, { ...BuildStatsRequest.create(), ...request }),
    stats: (about, of) => unary(QueryService.stats, { about, of: { ...BuildStatsRequest.create(), ...of } }),
    findEvents: (request) => unary(QueryService.findEvents, request),
    runSql: (request) => unary(QueryService.runSql, request),
    async *exportTables(request, signal) {
      const { path, requestSerialize } = QueryService.exportTables;
      // Without a deadline: an export takes as long as its reader does.
      const call = client.makeServerStreamRequest(path, requestSerialize, (bytes) => bytes, request, metadata());
      const stop = () => call.cancel();
      signal.addEventListener("abort", stop, { once: true });
      try {
        yield* call as AsyncIterable<Buffer>;
      } catch (error) {
        throw clientError(error);
      } finally {
        signal.removeEventListener("abort", stop);
        call.on("error", () => {});
        stop();
      }
    },
    position: (workspace = "", current = false) => unary(QueryService.position, { workspace, current }),
    setAside: (workspace) => unary(QueryService.setAside, { workspace }),
    workspaces: (workspace) => unary(QueryService.workspaces, { workspace }),
    [Symbol.asyncDispose]: async () => client.close(),
  };
}

/** Query's errors are meant for our client, except those about our own key. */
function clientError(error: unknown): TapedeckError {
  const known = fromServiceError(error);
  if (known.code !== "unauthenticated" && known.code !== "forbidden") return known;
  return new TapedeckError("internal", "internal error", {}, { cause: error });
}
