import type { Imported } from "@tapedeck/proto/tapedeck/v1/recorder";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { Fact } from "../../normalize/fact.ts";
import { sessionEnded } from "./session-facts.ts";
import { type ConnectionRef, upstreamFact, upstreamRestored } from "./upstream-facts.ts";

export const importAddressPrefix = "session of ";

/** Takes the place of the upstream's address when a session comes from a file. */
export function importAddress({ source }: Imported): string {
  return `${importAddressPrefix}${source}`;
}

export function isImport({ address }: Pick<ConnectionRef, "address">): boolean {
  return address.startsWith(importAddressPrefix);
}

/**
 * The events of a session that was recorded elsewhere follow. Belongs to the source, because an import adds nothing to the
 * session's own events.
 */
export function importBegan(connection: string, tap: string, imported: Imported): Fact {
  const { session, source, recorded_at } = imported;
  const when = recorded_at === undefined ? "" : ` since ${timeToJson(recorded_at)}`;
  const summary = `imports session ${session}, which was recorded${when} as ${source}`;
  return upstreamFact("upstream.connected", summary, { connection, address: importAddress(imported), tap });
}

/** Continues a session that an earlier import ended, from a later export. */
export function importContinues(connection: string, imported: Imported): Fact {
  return upstreamRestored({ connection, address: importAddress(imported) });
}

export const importedEndReason = "it was still running when it was exported";

/** Ends a session that was still running when it was exported. */
export function importedEnd({ exported_at }: Imported): Fact {
  const when = exported_at === undefined ? "" : ` (${timeToJson(exported_at)})`;
  return { ...sessionEnded(`${importedEndReason}${when}`), inferred: true };
}
