import type { HistoryItem, HistoryPage } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { isAll, type ListFilter, listParameters } from "../../api/list-filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { coloured } from "../../display/colour.ts";
import { agoText, tookText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { statusColour } from "../../display/status-colour.ts";
import { type Column, table } from "../../display/table.ts";
import { loopNames } from "../../sources/named-loop.ts";
import { namedSources, sourcesOrFolder } from "../../sources/named-source.ts";

export type LoopsOptions = ListFilter & {
  readonly url?: string;
  readonly json?: boolean;
  readonly outcome?: readonly string[];
  readonly all?: boolean;
  readonly limit: number;
};

const columns: readonly Column[] = [
  { title: "LOOP", isName: true },
  ...["STARTED", "OUTCOME", "WAITED"].map((title) => ({ title })),
  { title: "REASON", isExtra: true },
  { title: "FAILED FIRST" },
];

const over = ["succeeded", "failed", "canceled", "unknown"];

export async function loops({ url, json, outcome, all, limit, ...filter }: LoopsOptions): Promise<void> {
  const api = apiAt(url);
  const isNarrowed = all || filter.developer !== undefined || filter.project !== undefined;
  const sources = await (isNarrowed ? namedSources : sourcesOrFolder)(api, filter.source);
  const parameters = { ...listParameters(filter, sources), kind: "loop" };
  const page = await api.get<HistoryPage>("/api/v1/search", { ...parameters, outcome: outcome ?? over, limit });
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    print(
      isAll(filter) && sources === undefined && outcome === undefined ? "No finished loops yet." : "No matching loops.",
    );
    await reportUnrecorded(api, sources);
    return;
  }
  const nameOf = await loopNames(api, page.items);
  const rows = page.items.map((loop) => [
    nameOf(loop),
    agoText(loop.startedAt),
    coloured(statusColour(loop.outcome ?? ""), loop.outcome ?? ""),
    tookText(loop),
    loop.cause?.reason ?? "",
    causeText(loop),
  ]);
  print(table(columns, rows));
}

/** "sync web (4 tries): container not found", also of a loop that went on and succeeded. */
function causeText({ cause, outcome }: HistoryItem): string {
  if (cause === null) return outcome === "failed" ? "failed; the tool gave no reason" : "";
  const tries = cause.tries > 1 ? `(${cause.tries} tries)` : "";
  const name = [cause.phase, cause.subject, tries].filter((part) => part !== "").join(" ");
  return [plainLine(name), plainLine(cause.text || cause.reason)].filter((part) => part !== "").join(": ");
}
