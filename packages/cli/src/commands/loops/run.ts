import type { Operation } from "@tapedeck/client";
import { apiAt, type Page } from "../../api/api.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { coloured } from "../../display/colour.ts";
import { agoText, tookText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { spokenSource } from "../../display/source-name.ts";
import { statusColour } from "../../display/status-colour.ts";
import { table } from "../../display/table.ts";

export type LoopsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly outcome?: readonly string[];
  readonly limit: number;
  readonly since?: string;
  readonly until?: string;
};

const over = ["succeeded", "failed", "canceled", "unknown"];

export async function loops(options: LoopsOptions): Promise<void> {
  const { url, json, source, outcome, limit, since: from, until: to } = options;
  const api = apiAt(url);
  const query = { source, kind: "loop", outcome: outcome ?? over, limit, from, to };
  const page = await api.get<Page<Operation>>("/api/v1/operations", query);
  if (json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    const isAll = [source, outcome, from, to].every((one) => one === undefined);
    print(isAll ? "No finished loops yet." : "No matching loops.");
    if (source !== undefined) await reportUnrecorded(api, [source]);
    return;
  }
  const rows = page.items.map((loop) => [
    loopName(loop),
    spokenSource(loop.source),
    agoText(loop.startedAt),
    coloured(statusColour(loop.outcome ?? ""), loop.outcome ?? ""),
    tookText(loop),
    loop.cause?.reason ?? "",
    causeText(loop),
  ]);
  const columns = ["LOOP", "SOURCE", "STARTED", "OUTCOME", "WAITED", "REASON", "FAILED FIRST"].map((title) => ({
    title,
  }));
  print(table(columns, rows));
}

/** The loop's name in the API and on the page. */
function loopName({ session, runner, loop }: Operation): string {
  return `${session}.${runner}.${loop}`;
}

const longest = 80;

/** "sync web (4 tries): container not found", also of a loop that went on and succeeded. */
function causeText({ cause, outcome }: Operation): string {
  if (cause === null) return outcome === "failed" ? "failed; the tool gave no reason" : "";
  const tries = cause.tries > 1 ? `(${cause.tries} tries)` : "";
  const name = [cause.phase, cause.subject, tries].filter((part) => part !== "").join(" ");
  const text = [plainLine(name), plainLine(cause.text || cause.reason)].filter((part) => part !== "").join(": ");
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}
