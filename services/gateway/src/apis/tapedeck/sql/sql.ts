import type { CallContext } from "../../../call-context.ts";
import type { QueryClient } from "../../../query-client.ts";

/** Rows as arrays of numbers, and of texts as Postgres writes other values. */
export type SqlAnswer = {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (number | string | null)[])[];
  readonly isMore: boolean;
  /** The tables had at least this. */
  readonly position: string;
};

export type SqlApi = (
  context: Pick<CallContext, "workspace" | "roles" | "developer">,
  request: { readonly sql: string; readonly maxRows: number },
) => Promise<SqlAnswer>;

/** Everything throws TapedeckError: invalid_argument with what Postgres says of the query. */
export function sqlApi(query: Pick<QueryClient, "runSql" | "position">): SqlApi {
  return async ({ workspace }, { sql, maxRows }) => {
    const { position } = await query.position(workspace);
    const request = { workspace, developer: "", sql, max_rows: maxRows };
    const { columns, rows, is_more: isMore } = await query.runSql(request);
    return { columns, rows: rows.map(({ json }) => JSON.parse(json) as (number | string | null)[]), isMore, position };
  };
}
