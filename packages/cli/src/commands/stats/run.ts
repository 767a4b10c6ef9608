import { ownValue } from "@tapedeck/shared/own-value";
import { apiAt, type Page } from "../../api/api.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { table } from "../../display/table.ts";
import type { StatsKind, StatsRow } from "./kinds.ts";

export type StatsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly group: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly artifact?: readonly string[];
  readonly zone?: string;
  readonly source?: string;
  readonly since?: string;
  readonly until?: string;
};

export async function stats(kind: StatsKind, options: StatsOptions): Promise<void> {
  const { url, json, group, developer, project, artifact, zone, source, since: from, until: to } = options;
  // A source in full has its workspace before it.
  const parts = source?.split("/") ?? [];
  const [ofDeveloper, ofProject] = parts.length === 4 ? parts.slice(1) : parts;
  const parameters = {
    group: group.join(","),
    from,
    to,
    artifact,
    zone,
    developer: developer ?? ofDeveloper,
    project: project ?? ofProject,
  };
  const api = apiAt(url);
  const page = await api.get<Page<StatsRow>>(`/api/v1/stats/${kind.name}`, parameters);
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    const isAll = [from, to, developer, project, artifact, source].every((one) => one === undefined);
    print(isAll ? `No ${kind.nothing} yet.` : `No matching ${kind.nothing}.`);
    if (source !== undefined) await reportUnrecorded(api, [source]);
    return;
  }
  const numbers = kind.columns.map(({ title, align = "right" }) => ({ title, align }));
  const rows = page.items.map((row) => [
    ...group.map((name) => groupText(row, name)),
    ...kind.columns.map(({ cell }) => cell(row)),
  ]);
  print(table([...group.map((name) => ({ title: titleOf(name) })), ...numbers], rows));
  const untimed = page.items.reduce((sum, row) => sum + Number(ownValue(row, "untimed") ?? 0), 0);
  if (untimed > 0) print(untimedText(untimed));
}

function untimedText(untimed: number): string {
  const are = untimed === 1 ? "1 of these is" : `${untimed} of these are`;
  return `${are} in no percentile: a clock was wrong, or a start was not seen.`;
}

/** An error may have many lines, of which the first is the summary. */
function groupText(row: StatsRow, name: string): string {
  const value = name.startsWith("label.") ? ownValue(row.labels, name.slice("label.".length)) : ownValue(row, name);
  const line = plainLine(String(value ?? "").split("\n")[0] ?? "");
  return line.length > maxText ? `${line.slice(0, maxText - 1)}…` : line;
}

const maxText = 80;

/** "errorCode" is ERROR CODE. */
function titleOf(name: string): string {
  return name
    .replace(/^label\./, "")
    .replace(/[A-Z]/g, " $&")
    .toUpperCase();
}
