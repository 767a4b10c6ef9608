import { createHash } from "node:crypto";
import type { ForeignSession } from "@tapedeck/shared/testing/foreign-session";
import { endLine, eventLine, headerLine } from "../session-file/session-file-format.ts";

export type FileParts = {
  /** The sessions of one source of Skaffold, in order. */
  readonly sessions: readonly ForeignSession[];
  /** Fields that are otherwise. */
  readonly header?: object;
  readonly end?: object;
};

/** Lines of a session file as the command writes it. */
export function sessionFileLines({ sessions, header = {}, end = {} }: FileParts): string[] {
  const source = sessions[0]?.source ?? "";
  const about = { exportedAt: "2026-11-20T17:00:00.000Z", exportedBy: "tapedeck 0.1.0", upstream: "skaffold" as const };
  const of = sessions.map(({ session }) => ({ session, labels: {}, upstreamVersion: "v2" }));
  const lines = [headerLine({ ...about, source, position: "abc-40", sessions: of, ...header })];
  for (const event of sessions.flatMap(({ events }) => events)) {
    lines.push(eventLine({ position: `abc-${lines.length}`, recordedAt: new Date(1_800_000_000_123), event }));
  }
  const sha256 = createHash("sha256").update(textOf(lines)).digest("hex");
  return [...lines, endLine({ events: lines.length - 1, missing: {}, sha256, ...end })];
}

export function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}
