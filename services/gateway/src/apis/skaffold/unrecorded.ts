import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { CallContext } from "../../call-context.ts";
import { fullName } from "../resolve-source.ts";
import { type ScopeDeps, type SessionScope, sessionScope } from "../session-scope.ts";

/**
 * The answer of `read`, or of `empty` at an endpoint whose source has not been recorded yet. Clients of Skaffold open
 * their streams while it starts, and do not try again after NOT_FOUND. For them an endpoint is a Skaffold that has just
 * started: its state is empty, and its streams wait.
 * @throws TapedeckError the errors of `read`; not_ready if the log has events of the source and the tables have not
 */
export async function readOrEmpty<T>(
  { log, positions }: Pick<ScopeDeps, "log" | "positions">,
  context: CallContext,
  read: (context: CallContext) => Promise<T>,
  empty: (source: SourceName) => T | Promise<T>,
): Promise<T> {
  try {
    return await read(context);
  } catch (error) {
    const source = unknownSource(error, context);
    if (source === undefined) throw error;
    // The tables may be behind the log, far behind where they are made anew.
    const last = await log().lastMatch([sourceFilter(source)]);
    if (!mayHoldEvents(logStart, last)) return empty(source);
    return read({ ...context, minPosition: positions.written(last) });
  }
}

/** The endpoint's source, if the call failed because the tables do not have it. */
function unknownSource(error: unknown, context: CallContext): SourceName | undefined {
  const { isBound, session, at, minPosition } = context;
  if (isBound !== true || session !== undefined || at !== undefined || minPosition !== undefined) return undefined;
  if (!(error instanceof TapedeckError) || error.code !== "unknown_source") return undefined;
  return fullName(context, "skaffold");
}

/** The range of a stream: as of any call, or, at an endpoint without a recording, everything that will be recorded. */
export async function streamScope(deps: ScopeDeps, context: CallContext): Promise<SessionScope> {
  const read = (requested: CallContext) => sessionScope(deps, requested, "skaffold");
  return readOrEmpty(deps, context, read, async (source) => {
    const { positions } = deps;
    const afterOffset = context.after === undefined ? logStart : await positions.resolveAfter(context.after);
    const head = { position: positions.written(afterOffset), session: "" };
    return { source, only: undefined, sessionStart: logStart, afterOffset, head };
  });
}
