import type { Session } from "@tapedeck/client";
import { lastedMs } from "@tapedeck/client/lanes/lasted";
import { apiAt, type Page } from "../../api/api.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { agoText, durationText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { table } from "../../display/table.ts";

export type SessionsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly limit: number;
  readonly since?: string;
  readonly until?: string;
};

export async function sessions(options: SessionsOptions): Promise<void> {
  const { url, json, source, label, limit, since: from, until: to } = options;
  const labels = Object.entries(label ?? {}).map(([name, value]) => `${name}=${value}`);
  const api = apiAt(url);
  const page = await api.get<Page<Session>>("/api/v1/sessions", { source, label: labels, limit, from, to });
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    print(
      source === undefined && label === undefined && from === undefined && to === undefined
        ? "No sessions yet."
        : "No matching sessions.",
    );
    if (source !== undefined) await reportUnrecorded(api, [source]);
    return;
  }
  const rows = page.items.map((session) => [
    session.session,
    shortSource(session.source),
    agoText(session.startedAt),
    lasted(session),
    about(session),
  ]);
  const columns = ["SESSION", "SOURCE", "STARTED", "LASTED", "LABELS"].map((title) => ({ title }));
  print(table(columns, rows));
}

/** Nobody knows how long a session lasted that was lost, or whose times can't both be right. */
export function lasted({
  startedAt,
  endedAt,
  endReason,
}: Pick<Session, "startedAt" | "endedAt" | "endReason">): string {
  if (endedAt === null && endReason !== null) return "unknown";
  if (startedAt === null) return "-";
  if (endedAt === null) return "running";
  const ms = lastedMs(Date.parse(startedAt), Date.parse(endedAt), "session");
  return ms === undefined ? "unknown" : durationText(ms);
}

function about({ labels, gaps }: Session): string {
  const { branch, commit, dirty, command = "" } = labels;
  const code = [branch, commit?.slice(0, 8)].filter((part) => part !== undefined).join("@");
  const known = new Set(["branch", "commit", "dirty", "host", "user", "command"]);
  const others = Object.entries(labels).flatMap(([name, value]) => (known.has(name) ? [] : [`${name}=${value}`]));
  const gap = gaps === 0 ? [] : [`${gaps} ${gaps === 1 ? "gap" : "gaps"}`];
  return [command, `${code}${dirty === "true" ? "+" : ""}`, ...others, ...gap].filter((part) => part !== "").join(" ");
}
