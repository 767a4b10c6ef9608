import { type ChannelCredentials, credentials, Metadata } from "@grpc/grpc-js";
import type {
  ListOperationsResponse,
  ListSessionsResponse,
  ListSourcesResponse,
  SearchResponse,
} from "@tapedeck/proto/tapedeck/v1/lists";
import {
  BuildStatsRequest,
  type BuildStatsResponse,
  type DeepPartial,
  ExportRequest,
  FindEventsRequest,
  type FindEventsResponse,
  HistoryRequest,
  ListRequest,
  PositionRequest,
  type PositionResponse,
  QueryClient,
  ReadStateRequest,
  RebuildRequest,
  RunSqlRequest,
  type RunSqlResponse,
  SetAsideRequest,
  type SetAsideResponse,
  type StateHead,
  StatsRequest,
  type StatsResponse,
  WorkspacesRequest,
  type WorkspacesResponse,
} from "@tapedeck/proto/tapedeck/v1/query";
import type { ExportTablesResponse } from "@tapedeck/proto/tapedeck/v1/tables";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { servicesKey } from "./stage.ts";

type Callback<Response> = (error: Error | null, response: Response) => void;

/** A gRPC client whose failures are TapedeckErrors. */
export function queryClient(
  address: string,
  key = servicesKey,
  channel: ChannelCredentials = credentials.createInsecure(),
) {
  const client = new QueryClient(address, channel);
  const metadata = new Metadata();
  metadata.set("tapedeck-key", key);
  const ask = <Response>(call: (callback: Callback<Response>) => void) =>
    new Promise<Response>((resolve, reject) => {
      call((error, response) => (error === null ? resolve(response) : reject(fromServiceError(error))));
    });
  const workspace = "acme";
  return {
    listSources: (request: DeepPartial<ListRequest> = {}) =>
      ask<ListSourcesResponse>((done) =>
        client.listSources(ListRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    listSessions: (request: DeepPartial<ListRequest> = {}) =>
      ask<ListSessionsResponse>((done) =>
        client.listSessions(ListRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    listOperations: (request: DeepPartial<ListRequest> = {}) =>
      ask<ListOperationsResponse>((done) =>
        client.listOperations(ListRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    search: (text = "", filter: DeepPartial<ListRequest> = {}, reasons: readonly string[] = []) =>
      ask<SearchResponse>((done) =>
        client.search(
          HistoryRequest.fromPartial({ text, filter: { workspace, ...filter }, reasons: [...reasons] }),
          metadata,
          done,
        ),
      ),
    buildStats: (request: DeepPartial<BuildStatsRequest> = {}) =>
      ask<BuildStatsResponse>((done) =>
        client.buildStats(BuildStatsRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    stats: (about: string, of: DeepPartial<BuildStatsRequest> = {}) =>
      ask<StatsResponse>((done) =>
        client.stats(StatsRequest.fromPartial({ about, of: { workspace, ...of } }), metadata, done),
      ),
    position: (request: DeepPartial<PositionRequest> = {}) =>
      ask<PositionResponse>((done) =>
        client.position(PositionRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    findEvents: ({ filter, ...request }: DeepPartial<FindEventsRequest>) =>
      ask<FindEventsResponse>((done) =>
        client.findEvents(
          FindEventsRequest.fromPartial({ filter: { workspace, ...filter }, ...request }),
          metadata,
          done,
        ),
      ),
    runSql: (request: DeepPartial<RunSqlRequest>) =>
      ask<RunSqlResponse>((done) =>
        client.runSql(RunSqlRequest.fromPartial({ workspace, ...request }), metadata, done),
      ),
    workspaces: (request: DeepPartial<WorkspacesRequest> = {}) =>
      ask<WorkspacesResponse>((done) =>
        client.workspaces(WorkspacesRequest.fromPartial({ ...request }), metadata, done),
      ),
    setAside: (workspace = "acme") =>
      ask<SetAsideResponse>((done) => client.setAside(SetAsideRequest.create({ workspace }), metadata, done)),
    async *exportTables(request: DeepPartial<ExportRequest>): AsyncGenerator<ExportTablesResponse, void> {
      const call = client.exportTables(ExportRequest.fromPartial({ workspace, ...request }), metadata);
      try {
        yield* call as AsyncIterable<ExportTablesResponse>;
      } catch (error) {
        throw fromServiceError(error);
      } finally {
        call.on("error", () => {});
        call.cancel();
      }
    },
    /** Resolves when the tables of a workspace are made anew. */
    async rebuild(workspace: string) {
      try {
        for await (const _ of client.rebuild(RebuildRequest.create({ workspace, fresh: false }), metadata));
      } catch (error) {
        throw fromServiceError(error);
      }
    },
    async readState(request: DeepPartial<ReadStateRequest>) {
      const full = ReadStateRequest.fromPartial({ workspace, collection: "skaffold.v1", ...request });
      let head: StateHead | undefined;
      const rows: Buffer[] = [];
      const positions: string[] = [];
      try {
        for await (const { body } of client.readState(full, metadata)) {
          if (body?.$case === "head") head = body.value;
          if (body?.$case !== "row") continue;
          rows.push(body.value.bytes);
          positions.push(body.value.position);
        }
      } catch (error) {
        throw fromServiceError(error);
      }
      return { head, rows, positions };
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** What a query says at /readyz. */
export async function readiness(health: string): Promise<{ status: number; checks: Record<string, string> }> {
  const response = await fetch(`http://${health}/readyz`);
  return { status: response.status, ...((await response.json()) as { checks: Record<string, string> }) };
}
