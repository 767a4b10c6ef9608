import type { ReportedConditions } from "@tapedeck/shared/service/condition";
import { type Readiness, readinessOf } from "@tapedeck/shared/service/health";
import type { LogLink } from "./log-link.ts";
import type { QueryClient } from "./query-client.ts";
import type { Workspaces } from "./workspaces/workspaces.ts";

export type ReadinessDeps = {
  readonly link: Pick<LogLink, "failed">;
  readonly workspaces: Pick<Workspaces<unknown>, "check">;
  readonly query: Pick<QueryClient, "position">;
  /** What the recorders report of themselves. */
  readonly conditions: Pick<ReportedConditions, "now">;
};

export function gatewayReadiness({ link, workspaces, query, conditions }: ReadinessDeps): () => Promise<Readiness> {
  let failure: Error | undefined;
  link.failed.catch((error: Error) => {
    failure = error;
  });
  return () =>
    readinessOf({
      log: async () => {
        if (failure !== undefined) throw failure;
        await workspaces.check();
        return undefined;
      },
      recording: () => conditions.now.problems[0],
      query: async () => {
        await query.position().catch(withItsCause);
        return undefined;
      },
    });
}

/** Operators see why query can't be asked, such as a certificate that is not trusted; clients do not. */
function withItsCause(error: Error): never {
  const { cause } = error;
  const details = cause instanceof Error && "details" in cause ? String(cause.details) : "";
  throw details === "" ? error : new Error(`${error.message} (${details})`, { cause });
}
