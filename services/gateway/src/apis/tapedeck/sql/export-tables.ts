import type { ExportTablesRequest } from "@tapedeck/proto/tapedeck/v1/tables";
import type { CallContext } from "../../../call-context.ts";
import type { QueryClient } from "../../../query-client.ts";
import type { EncodedStream } from "../../encoded-answer.ts";

export type ExportTablesApi = (days: ExportTablesRequest, context: CallContext) => Promise<EncodedStream>;

/** What is wrong with the request, query says before its first message, and the answer's stream throws. */
export function exportTablesApi(query: Pick<QueryClient, "exportTables" | "position">): ExportTablesApi {
  return async (days, { workspace, signal }) => {
    const { position } = await query.position(workspace);
    const messages = query.exportTables({ workspace, developer: undefined, days }, signal);
    // The tables had at least this.
    return { head: { position }, messages };
  };
}
