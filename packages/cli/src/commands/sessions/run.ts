import type { Session } from "@tapedeck/client";
import { lastedMs } from "@tapedeck/client/lanes/lasted";
import { apiAt, type Page } from "../../api/api.ts";
import { isAll, type ListFilter, listParameters } from "../../api/list-filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { agoText, durationText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { spokenSource } from "../../display/source-name.ts";
import { table } from "../../display/table.ts";
import { namedSources } from "../../sources/named-source.ts";

export type SessionsOptions = ListFilter & {
  readonly url?: string;
  readonly json?: boolean;
  readonly limit: number;
};

export async function sessions({ url, json, limit, ...filter }: SessionsOptions): Promise<void> {
  const api = apiAt(url);
  const sources = await namedSources(api, filter.source);
  const page = await api.get<Page<Session>>("/api/v1/sessions", { ...listParameters(filter, sources), limit });
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    print(isAll(filter) ? "No sessions yet." : "No matching sessions.");
    await reportUnrecorded(api, sources);
    return;
  }
  const rows = page.items.map((session) => [
    session.session,
    spokenSource(session.source),
    agoText(session.startedAt),
    lasted(session),
    about(session),
  ]);
  const others = ["STARTED", "LASTED", "LABELS"].map((title) => ({ title }));
  print(table([{ title: "SESSION", isName: true }, { title: "SOURCE", isName: true }, ...others], rows));
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
