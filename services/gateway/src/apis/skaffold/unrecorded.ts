import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { logStart } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import type { CallContext } from "../../call-context.ts";
import { fullName } from "../resolve-source.ts";
import { type ScopeDeps, type SessionScope, sessionScope } from "../session-scope.ts";

/**
 * The source of an endpoint, if the call failed because nothing of it has been recorded yet. Clients of Skaffold open
 * their streams while it starts, and do not try again after NOT_FOUND. For them an endpoint is a Skaffold that has just
 * started: its state is empty, and its streams wait.
 */
export function unrecordedSource(error: unknown, context: CallContext): SourceName | undefined {
  const { isBound, session, at, minPosition } = context;
  if (isBound !== true || session !== undefined || at !== undefined || minPosition !== undefined) return undefined;
  if (!(error instanceof TapedeckError) || error.code !== "unknown_source") return undefined;
  return fullName(context, "skaffold");
}

/** The range of a stream: as of any call, or, at an endpoint without a recording, everything that will be recorded. */
export async function streamScope(deps: ScopeDeps, context: CallContext): Promise<SessionScope> {
  try {
    return await sessionScope(deps, context, "skaffold");
  } catch (error) {
    const source = unrecordedSource(error, context);
    if (source === undefined) throw error;
    const { positions } = deps;
    const afterOffset = context.after === undefined ? logStart : await positions.resolveAfter(context.after);
    const head = { position: positions.written(afterOffset), session: "" };
    return { source, only: undefined, sessionStart: logStart, afterOffset, head };
  }
}
