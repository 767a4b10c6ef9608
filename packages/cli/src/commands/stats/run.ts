import { ownValue } from "@tapedeck/shared/own-value";
import { apiAt, type Page } from "../../api/api.ts";
import { isAll, type ListFilter, listParameters } from "../../api/list-filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { table } from "../../display/table.ts";
import { namedSources } from "../../sources/named-source.ts";
import type { StatsKind, StatsRow } from "./kinds.ts";

export type StatsOptions = ListFilter & {
  readonly url?: string;
  readonly json?: boolean;
  readonly group: readonly string[];
  readonly zone?: string;
  readonly limit?: number;
};

export async function stats(kind: StatsKind, options: StatsOptions): Promise<void> {
  const { url, json, group, zone, limit, ...filter } = options;
  const api = apiAt(url);
  const sources = await namedSources(api, filter.source);
  const parameters = { ...listParameters(filter, sources), group: group.join(","), zone };
  const all = await api.get<Page<StatsRow>>(`/api/v1/stats/${kind.name}`, parameters);
  const page = { ...all, items: all.items.slice(0, limit) };
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    print(isAll(filter) ? `No ${kind.nothing} yet.` : `No matching ${kind.nothing}.`);
    await reportUnrecorded(api, sources);
    return;
  }
  const numbers = kind.columns.map(({ title, align = "right", isExtra = false }) => ({ title, align, isExtra }));
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

/** An error may have many lines, of which the first is the summary. A cause begins with its reason, which may stand beside it. */
function groupText(row: StatsRow, name: string): string {
  const value = name.startsWith("label.") ? ownValue(row.labels, name.slice("label.".length)) : ownValue(row, name);
  const text = plainLine(String(value ?? "").split("\n")[0] ?? "");
  const reason = `${row.reason ?? ""}: `;
  return name === "cause" && text.startsWith(reason) ? text.slice(reason.length) : text;
}

/** "errorCode" is ERROR CODE. */
function titleOf(name: string): string {
  return name
    .replace(/^label\./, "")
    .replace(/[A-Z]/g, " $&")
    .toUpperCase();
}
