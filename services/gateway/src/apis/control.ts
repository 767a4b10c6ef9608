import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { type Audit, auditedCaller } from "../audit/audit-log.ts";
import { requireRole } from "../auth/roles.ts";
import type { AnswerHead, CallContext } from "../call-context.ts";
import type { ControlClient } from "../control-client.ts";
import type { RefusedCall } from "../limits/refused-calls.ts";
import type { Positions } from "../positions.ts";
import type { QueryClient } from "../query-client.ts";
import { nameOf, resolveSession, resolveSource } from "./resolve-source.ts";
import { refuseAt } from "./session-scope.ts";
import { UpstreamError } from "./upstream-error.ts";

export type ControlDeps = {
  readonly query: QueryClient;
  /** Records the control calls that the gateway refuses, or that were not answered. */
  readonly refused: (refusal: RefusedCall) => void;
  /** Records the others. */
  readonly audit: Audit;
};

/**
 * Makes a control call on the source of the call: it acts now, on the running process. `method`: full name, for
 * the audit log.
 * @throws TapedeckError forbidden, invalid_argument, upstream_away, the errors of resolveSource and of `act`
 */
export async function controlCall<T>(
  { query, refused, audit }: ControlDeps,
  { upstream, method }: { readonly upstream: UpstreamName; readonly method: string },
  context: CallContext,
  act: (source: Source) => Promise<T>,
): Promise<T> {
  const caller = { ...auditedCaller(context), workspace: context.workspace };
  let source: Source | undefined;
  const called = (outcome: string) =>
    audit({ action: "control.called", ...caller, about: { method, source: source?.source ?? "", outcome } });
  try {
    requireRole("controller", context);
    refuseAt(context, "a control call acts now: omit `at`");
    source = await resolveSource(query, context, upstream);
    await refuseEnded(query, source, context);
    const answer = await act(source);
    called("ok");
    return answer;
  } catch (error) {
    // Its text may repeat what the request had.
    if (error instanceof UpstreamError) called(`refused by the upstream, code ${error.code}`);
    if (error instanceof TapedeckError) {
      refused({ ...caller, source: source?.source ?? context.source ?? "", method, error });
    }
    throw error;
  }
}

/** A call that names a session acts on that process, and on no later one. */
async function refuseEnded(query: QueryClient, source: Source, { workspace, session }: CallContext): Promise<void> {
  if (session === undefined) return;
  const named = await resolveSession(query, workspace, source, session);
  if (named?.ended !== true) return;
  throw new TapedeckError(
    "upstream_away",
    `session ${session} of ${source.source} has ended: control calls are no longer possible`,
  );
}

/** A control call as the client made it, and as it goes to the upstream. */
export type ForwardedCall = {
  readonly method: string;
  readonly request: Uint8Array;
  readonly forwarded: { readonly method: string; readonly request: Uint8Array };
};

/**
 * The head of a control call's answer: ingest has recorded the answer by now, so the log's end includes it. None while the log is
 * away: the call was made all the same.
 */
export async function calledHead(positions: Positions): Promise<AnswerHead | undefined> {
  try {
    return { position: positions.written(await positions.lastOffset()) };
  } catch {
    return undefined;
  }
}

/** Sends a control call to the ingest that holds the source. A `code` other than 0 is the upstream's own refusal. */
export async function sendControl(
  control: ControlClient,
  source: Source,
  { who }: CallContext,
  { method, request, forwarded }: ForwardedCall,
): Promise<ControlReply> {
  return control.call(nameOf(source), {
    method,
    request: Buffer.from(request),
    forwarded_method: forwarded.method,
    forwarded_request: Buffer.from(forwarded.request),
    who,
  });
}
