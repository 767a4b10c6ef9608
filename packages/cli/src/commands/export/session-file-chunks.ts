import { createHash } from "node:crypto";
import { channelsOf } from "@tapedeck/ingest/for-cli/sessions";
import type { Session } from "@tapedeck/proto/tapedeck/v1/lists";
import { sessionCheck } from "@tapedeck/shared/events/session-check";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import { isUpstreamName, type UpstreamName } from "@tapedeck/shared/upstreams";
import { version } from "@tapedeck/shared/version";
import type { ToExport } from "../../api/exported-sessions.ts";
import { CommandError } from "../../command-error.ts";
import { type ExportedEvent, endLine, eventLine, headerLine } from "../../session-file/session-file-format.ts";

/** Counts while the file is made. */
export type Filed = { events: number };

type EventsOf = (session: Session, until: string) => AsyncIterable<ExportedEvent>;

/** How much is written at once. */
const chunkLength = 64 * 1024;

/**
 * A session file (docs/session-file.md) in pieces of whole lines, made as it is read.
 * @throws CommandError when a session can't be exported as it is kept
 */
export async function* sessionFileChunks(
  { source, sessions, position }: ToExport,
  eventsOf: EventsOf,
  filed: Filed,
): AsyncGenerator<string, void> {
  const upstream = upstreamOf(source);
  const sha = createHash("sha256");
  const missing = new Map<string, Readonly<Record<string, number>>>();
  let chunk = `${headerLine({ ...aboutFile(), source, upstream, position, sessions: sessions.map(aboutSession) })}\n`;
  for (const session of sessions) {
    const check = sessionCheck({ session: session.session, source, channels: channelsOf(upstream) });
    for await (const exported of eventsOf(session, position)) {
      const reason = check.next(exported.event);
      if (reason !== undefined)
        throw unfit(session.session, `its event ${check.events + 1} (${exported.position}): ${reason}`);
      chunk += `${eventLine(exported)}\n`;
      filed.events++;
      if (chunk.length < chunkLength) continue;
      sha.update(chunk);
      yield chunk;
      chunk = "";
    }
    const reason = check.end();
    if (reason !== undefined) throw unfit(session.session, reason);
    if (Object.keys(check.holes).length > 0) missing.set(session.session, check.holes);
  }
  sha.update(chunk);
  yield `${chunk}${endLine({ events: filed.events, missing: Object.fromEntries(missing), sha256: sha.digest("hex") })}\n`;
}

function aboutFile() {
  return { exportedAt: new Date().toISOString(), exportedBy: `tapedeck ${version}` };
}

function upstreamOf(source: string): UpstreamName {
  const upstream = source.split("/").at(-1) ?? "";
  if (isUpstreamName(upstream)) return upstream;
  throw new CommandError(
    `${source} belongs to an upstream that this version of tapedeck does not support: use a newer one.`,
  );
}

function aboutSession({ session, labels, upstream_version, started_at, ended_at, end_reason, ended }: Session) {
  return {
    session,
    labels,
    upstreamVersion: upstream_version,
    ...(started_at && { startedAt: timeToJson(started_at) }),
    ...(ended
      ? { ...(ended_at && { endedAt: timeToJson(ended_at) }), endReason: end_reason }
      : { running: true as const }),
  };
}

function unfit(session: string, reason: string): CommandError {
  return new CommandError(`session ${session} can't be exported: ${reason}.`);
}
