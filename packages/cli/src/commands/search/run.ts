import type { HistoryItem, HistoryPage } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { type ListFilter, listParameters } from "../../api/list-filter.ts";
import { coloured } from "../../display/colour.ts";
import { agoText, tookText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { spokenSource } from "../../display/source-name.ts";
import { statusColour } from "../../display/status-colour.ts";
import { type Column, table } from "../../display/table.ts";
import { loopNames } from "../../sources/named-loop.ts";
import { namedSources } from "../../sources/named-source.ts";

export type SearchCommandOptions = ListFilter & {
  readonly url?: string;
  readonly json?: boolean;
  readonly kind?: readonly string[];
  readonly outcome?: readonly string[];
  readonly reason?: readonly string[];
  readonly limit: number;
};

export async function search(text: string, options: SearchCommandOptions): Promise<void> {
  const { url, json, kind, outcome, reason, limit, ...filter } = options;
  const api = apiAt(url);
  const parameters = listParameters(filter, await namedSources(api, filter.source));
  const query = { ...parameters, kind, outcome, reason, limit, q: text === "" ? undefined : text };
  const page = await api.get<HistoryPage>("/api/v1/search", query);
  if (json) {
    printJson(page);
    return;
  }
  if (text !== "") print(countText(page));
  else if (page.items.length === 0) print("Nothing matches.");
  if (page.items.length === 0) return;
  const nameOfLoop = await loopNames(
    api,
    page.items.filter(({ kind }) => kind === "loop"),
  );
  const rows = page.items.map((item) => [
    item.kind,
    item.kind === "loop" ? nameOfLoop(item) : nameOf(item),
    spokenSource(item.source),
    agoText(item.startedAt),
    coloured(statusColour(item.outcome ?? ""), item.outcome ?? "running"),
    tookText(item),
    lineOf(item),
  ]);
  print(table([...columns, { title: text === "" ? "WHY" : "LINE" }], rows));
}

const columns: readonly Column[] = [
  { title: "KIND" },
  { title: "NAME", isName: true },
  { title: "SOURCE", isExtra: true },
  { title: "STARTED" },
  { title: "OUTCOME" },
  { title: "TOOK", isExtra: true },
];

function countText({ items, total = 0, totalIsMinimum, nextPage }: HistoryPage): string {
  if (total === 0) return "No matches.";
  const count = totalIsMinimum ? `At least ${total} matches` : `${total} ${total === 1 ? "match" : "matches"}`;
  return nextPage === undefined ? `${count}:` : `${count}, the newest ${items.length}:`;
}

function nameOf({ kind, session, subject }: HistoryItem): string {
  return kind === "session" ? session : plainLine(subject);
}

function lineOf({ hit, cause }: HistoryItem): string {
  if (hit === undefined) return plainLine(cause?.text || cause?.reason || "");
  const place = hit.place === "output" ? [hit.step, hit.subject].filter((part) => part !== "").join(" ") : hit.place;
  return plainLine(place === "" ? hit.text : `${place}: ${hit.text.trim()}`);
}
