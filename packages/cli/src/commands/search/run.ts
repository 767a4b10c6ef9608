import type { HistoryItem, HistoryPage } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { coloured } from "../../display/colour.ts";
import { agoText, tookText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { spokenSource } from "../../display/source-name.ts";
import { statusColour } from "../../display/status-colour.ts";
import { table } from "../../display/table.ts";

export type SearchCommandOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly kind?: readonly string[];
  readonly outcome?: readonly string[];
  readonly reason?: readonly string[];
  readonly artifact?: readonly string[];
  readonly label?: Readonly<Record<string, string>>;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
};

export async function search(text: string, options: SearchCommandOptions): Promise<void> {
  const { url, json, since: from, until: to, label: labels = {}, ...filter } = options;
  const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const query = { ...filter, from, to, label, q: text === "" ? undefined : text };
  const page = await apiAt(url).get<HistoryPage>("/api/v1/search", query);
  if (json) {
    printJson(page);
    return;
  }
  if (text !== "") print(countText(page));
  else if (page.items.length === 0) print("Nothing matches.");
  if (page.items.length === 0) return;
  const columns = ["KIND", "NAME", "SOURCE", "STARTED", "OUTCOME", "TOOK", text === "" ? "WHY" : "LINE"];
  const rows = page.items.map((item) => [
    item.kind,
    nameOf(item),
    spokenSource(item.source),
    agoText(item.startedAt),
    coloured(statusColour(item.outcome ?? ""), item.outcome ?? "running"),
    tookText(item),
    cut(lineOf(item)),
  ]);
  print(
    table(
      columns.map((title) => ({ title })),
      rows,
    ),
  );
}

function countText({ items, total = 0, totalIsMinimum, nextPage }: HistoryPage): string {
  if (total === 0) return "No matches.";
  const count = totalIsMinimum ? `At least ${total} matches` : `${total} ${total === 1 ? "match" : "matches"}`;
  return nextPage === undefined ? `${count}:` : `${count}, the newest ${items.length}:`;
}

/** As `tapedeck why` and \`compare\` take it. */
function nameOf({ kind, session, runner, loop, subject }: HistoryItem): string {
  if (kind === "loop") return `${session}.${runner}.${loop}`;
  return kind === "session" ? session : plainLine(subject);
}

function lineOf({ hit, cause }: HistoryItem): string {
  if (hit === undefined) return plainLine(cause?.text || cause?.reason || "");
  const place = hit.place === "output" ? [hit.step, hit.subject].filter((part) => part !== "").join(" ") : hit.place;
  return plainLine(place === "" ? hit.text : `${place}: ${hit.text.trim()}`);
}

const longest = 80;

function cut(line: string): string {
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}
