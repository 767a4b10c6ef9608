import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { requireRole } from "../auth/roles.ts";
import type { CallContext } from "../call-context.ts";
import type { Refusal } from "../limits/refused-calls.ts";
import type { QueryClient } from "../query-client.ts";
import { resolveSession, resolveSource } from "./resolve-source.ts";
import { refuseMoment } from "./session-scope.ts";

export type ControlDeps = {
  readonly query: QueryClient;
  /** Told of the control calls that were refused here, and never reached the upstream. */
  readonly refused: (refusal: Refusal) => void;
};

/**
 * Makes a control call for the source that it means: it acts now, on the process that runs now. `method`: full name,
 * for the audit log.
 * @throws TapedeckError forbidden, invalid_argument, upstream_away, those of resolveSource and what `act` throws
 */
export async function controlCall<T>(
  { query, refused }: ControlDeps,
  { upstream, method }: { readonly upstream: UpstreamName; readonly method: string },
  context: CallContext,
  act: (source: Source) => Promise<T>,
): Promise<T> {
  let source: Source | undefined;
  try {
    requireRole("controller", context);
    refuseMoment(context, "a call acts now: leave `at` away");
    source = await resolveSource(query, context, upstream);
    await refuseEnded(query, source, context);
    return await act(source);
  } catch (error) {
    if (error instanceof TapedeckError) {
      const { who, workspace } = context;
      refused({ who, workspace, source: source?.source ?? context.source ?? "", method, error });
    }
    throw error;
  }
}

/** A call that names a session means that process, and no later one. */
async function refuseEnded(query: QueryClient, source: Source, { workspace, session }: CallContext): Promise<void> {
  if (session === undefined) return;
  const named = await resolveSession(query, workspace, source, session);
  if (named?.ended !== true) return;
  throw new TapedeckError("upstream_away", `session ${session} of ${source.source} has ended: nothing can be called`);
}
