import { createHash } from "node:crypto";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { justBefore, laterOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { decodeTime, encodeTime } from "ulid";
import type { LogHistoryReader } from "../journal/load-history.ts";
import type { Memory } from "./memory.ts";

/** How far the clocks of those who number sessions and of the log may disagree. */
const clockMs = 24 * 3_600_000;
const timeLength = 10;
const randomLength = 16;
/** Crockford's base32, as in any ULID. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

type ImportedId = {
  readonly reader: LogHistoryReader;
  /** The id under which the session was recorded first, in whatever Tapedeck. */
  readonly origin: string;
  /** The source that the session is imported into. */
  readonly source: SourceName;
  readonly signal: AbortSignal;
  /** By workspace. */
  readonly memory?: Memory<string, WorkspaceSessions> | undefined;
};

/** The sessions that the log has of a workspace from a moment on, up to a place in it. */
export type WorkspaceSessions = {
  readonly sinceMs: number;
  readonly upTo: Offset;
  /** The source that has a session, by the session's id; undefined: it was erased. */
  readonly holders: Map<string, string | undefined>;
};

/**
 * The id that an imported session has in this source's workspace. All queries about a session go by its id alone, so it
 * is in one source only. As the contents of other workspaces must stay hidden, only this workspace is looked up in the
 * log, and a session that is unknown there gets a unique id.
 * @throws TapedeckError invalid_argument when another source of the workspace has it
 */
export async function importedId({ reader, origin, source, signal, memory }: ImportedId): Promise<string> {
  const { workspace } = sourceParts(source);
  const candidates = [origin, idIn(workspace, origin)];
  // It was recorded after it had got its id.
  const sinceMs = Math.max(0, decodeTime(origin) - clockMs);
  const known = await sessionsSince({ reader, workspace, sinceMs, signal, before: memory?.take(workspace) });
  memory?.keep(workspace, known);
  const { holders } = known;
  const [id] = candidates.filter((one) => holders.get(one) !== undefined);
  const holder = id === undefined ? undefined : holders.get(id);
  if (holder !== undefined && holder !== source) {
    const as = id === origin ? "" : `, and is session ${id} there`;
    throw new TapedeckError("invalid_argument", `session ${origin} is in this Tapedeck already, as ${holder}${as}`, {
      field: "session",
    });
  }
  return id ?? candidates.find((one) => holders.has(one)) ?? idIn(workspace, origin);
}

type SessionsSince = Pick<ImportedId, "reader" | "signal"> & {
  readonly workspace: string;
  readonly sinceMs: number;
  readonly before: WorkspaceSessions | undefined;
};

/** Goes on from what was read before, where that began early enough. */
async function sessionsSince(options: SessionsSince): Promise<WorkspaceSessions> {
  const { reader, workspace, sinceMs, signal } = options;
  const before = options.before !== undefined && options.before.sinceMs <= sinceMs ? options.before : undefined;
  const subjects = [workspaceFilter(workspace).replace(/>$/, `*.*.*.${ownChannel}.session`)];
  const upTo = await reader.lastMatch(subjects);
  const holders = before?.holders ?? new Map<string, string | undefined>();
  const first = before === undefined ? await reader.firstSince(new Date(sinceMs)) : undefined;
  const afterOffset = before?.upTo ?? (first === undefined ? upTo : justBefore(first));
  if (afterOffset < upTo) {
    for await (const { event } of reader.history({ afterOffset, subjects }, upTo, signal)) {
      holders.set(event.session, event.kind === "session.erased" ? undefined : event.source);
    }
  }
  signal.throwIfAborted();
  // The last of them may have been erased from the log meanwhile.
  return { sinceMs: before?.sinceMs ?? sinceMs, upTo: laterOf(upTo, before?.upTo ?? logStart), holders };
}

/**
 * An id with the time of the first one, so that sessions keep their order. The maker of the first id can't choose the
 * rest.
 */
export function idIn(workspace: string, origin: string): string {
  const hash = createHash("sha256").update(`${workspace}/${origin}`).digest();
  const rest = Array.from(hash.subarray(0, randomLength), (byte) => digits[byte % digits.length]);
  return encodeTime(decodeTime(origin), timeLength) + rest.join("");
}
