import { createHash } from "node:crypto";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { decodeTime, encodeTime } from "ulid";
import { ownChannel } from "../frames/numbering.ts";
import type { LogPast } from "../journal/source-history.ts";

/** How far the clocks of those who number sessions and of the log may disagree. */
const clockMs = 24 * 3_600_000;
const timeLength = 10;
const randomLength = 16;
/** Crockford's base32, as in any ULID. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

type ImportedId = {
  readonly reader: LogPast;
  /** The id under which the session was recorded first, in whatever Tapedeck. */
  readonly origin: string;
  /** Where it shall come. */
  readonly source: SourceName;
  readonly signal: AbortSignal;
};

/**
 * The id that an imported session has in this source's workspace. Everything that is asked about a session goes by its id
 * alone, so it is in one source only; and as nobody may learn what other workspaces have, the log is asked about this
 * workspace alone, and what is not known there gets an id that nobody else can have.
 * @throws TapedeckError invalid_argument when another source of the workspace has it
 */
export async function importedId({ reader, origin, source, signal }: ImportedId): Promise<string> {
  const { workspace } = sourceParts(source);
  const candidates = [origin, idIn(workspace, origin)];
  const { lastSeq } = await reader.bounds();
  // It was recorded after it had got its id.
  const first = await reader.firstSince(new Date(Math.max(0, decodeTime(origin) - clockMs)));
  const sessions = workspaceFilter(workspace).replace(/>$/, `*.*.*.${ownChannel}.session`);
  /** Which source has it, by id; undefined: it was erased. */
  const holders = new Map<string, string | undefined>();
  if (first !== undefined) {
    for await (const { event } of reader.history({ afterSeq: first - 1, subjects: [sessions] }, lastSeq, signal)) {
      if (!candidates.includes(event.session)) continue;
      holders.set(event.session, event.kind === "session.erased" ? undefined : event.source);
    }
  }
  signal.throwIfAborted();
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

/** Of the same time as the first id, so that sessions keep their order; the rest can't be chosen by whoever made that. */
export function idIn(workspace: string, origin: string): string {
  const hash = createHash("sha256").update(`${workspace}/${origin}`).digest();
  const rest = Array.from(hash.subarray(0, randomLength), (byte) => digits[byte % digits.length]);
  return encodeTime(decodeTime(origin), timeLength) + rest.join("");
}
