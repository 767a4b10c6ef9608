import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { everySubject } from "@tapedeck/shared/log/subjects";
import { parseSourceName, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { decodeTime } from "ulid";
import { ownChannel } from "./numbering.ts";
import type { LogPast } from "./source-history.ts";

/** How far the clocks of those who number sessions and of the log may disagree. */
const clockMs = 24 * 3_600_000;

type Elsewhere = {
  readonly reader: LogPast;
  readonly session: string;
  /** Where it shall come. */
  readonly source: SourceName;
  readonly signal: AbortSignal;
};

/**
 * A session is in one source only, as everything that is asked about it goes by its id alone; also across workspaces.
 * @throws TapedeckError invalid_argument
 */
export async function assertNowhereElse({ reader, session, source, signal }: Elsewhere): Promise<void> {
  const { lastSeq } = await reader.bounds();
  // It was recorded after it had got its id.
  const first = await reader.firstSince(new Date(Math.max(0, decodeTime(session) - clockMs)));
  const sessions = everySubject.replace(/>$/, `*.*.*.*.${ownChannel}.session`);
  const holders = new Set<string>();
  if (first === undefined) return;
  for await (const { event } of reader.history({ afterSeq: first - 1, subjects: [sessions] }, lastSeq, signal)) {
    if (event.session !== session) continue;
    if (event.kind === "session.erased") holders.delete(event.source);
    else holders.add(event.source);
  }
  signal.throwIfAborted();
  holders.delete(source);
  const [holder] = holders;
  if (holder === undefined) return;
  const parts = parseSourceName(holder);
  const isVisible = parts !== undefined && sourceParts(parts).workspace === sourceParts(source).workspace;
  const where = isVisible ? `as ${holder}` : "in another workspace";
  throw new TapedeckError("invalid_argument", `session ${session} is in this Tapedeck already, ${where}`, {
    field: "session",
  });
}
