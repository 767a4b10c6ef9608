import type { Operation } from "@tapedeck/client";
import { causeLine } from "@tapedeck/client/lanes/headline";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
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
  const causes = await causesOf(api, page.items, source);
  const rows = page.items.map((loop) => [
    loopName(loop),
    spokenSource(loop.source),
    agoText(loop.startedAt),
    coloured(statusColour(loop.outcome ?? ""), loop.outcome ?? ""),
    tookText(loop),
    mayHaveFailed(loop) ? causeText(loop, causes.get(loopName(loop))) : "",
  ]);
  const columns = ["LOOP", "SOURCE", "STARTED", "OUTCOME", "WAITED", "FAILED FIRST"].map((title) => ({ title }));
  print(table(columns, rows));
}

/** A step may have failed in a loop whose end was not seen, too. */
function mayHaveFailed({ outcome }: Operation): boolean {
  return outcome === "failed" || outcome === "unknown";
}

/** The loop's name in the API and on the page. */
function loopName({ session, runner, loop }: Operation): string {
  return `${session}.${runner}.${loop}`;
}

/** The step that failed first in a loop. */
type Cause = { readonly step: Operation; readonly tries: number };

const maxFailures = 1_000;
const marginMs = 1_000;

/** What failed first in each loop: the failed step that ended first. A sync that worked when it was tried again is none. */
async function causesOf(
  api: ApiClient,
  listed: readonly Operation[],
  source: string | undefined,
): Promise<ReadonlyMap<string, Cause>> {
  const failed = listed.filter(mayHaveFailed);
  const starts = failed.flatMap(({ startedAt }) => (startedAt === null ? [] : [Date.parse(startedAt)]));
  if (failed.length === 0) return new Map();
  const from = starts.length === 0 ? undefined : new Date(Math.min(...starts) - marginMs).toISOString();
  const ends = failed.map(({ endedAt }) => (endedAt === null ? Date.now() : Date.parse(endedAt)));
  // Else later failures would fill the answer.
  const to = new Date(Math.max(...ends) + marginMs).toISOString();
  const query = { source, outcome: "failed", from, to, limit: maxFailures };
  const { items } = await api.get<Page<Operation>>("/api/v1/operations", query);
  const inLoops = items.filter(({ kind, loop }) => kind !== "loop" && loop > 0);
  const isSync = ({ kind }: Operation) => kind === "sync";
  const synced = inLoops.some(isSync)
    ? await api.get<Page<Operation>>("/api/v1/operations", { ...query, kind: "sync", outcome: "succeeded" })
    : { items: [] };
  const repaired = new Set(synced.items.map(stepName));
  const steps = inLoops.filter((step) => !isSync(step) || !repaired.has(stepName(step)));
  const latestFirst = steps.toSorted((a, b) => ((a.endPosition ?? "") < (b.endPosition ?? "") ? 1 : -1));
  const first = new Map(latestFirst.map((step) => [loopName(step), step]));
  return new Map([...first].map(([name, step]) => [name, { step, tries: triesOf(step, steps) }]));
}

/** How often the step failed in its loop. */
function triesOf(step: Operation, failed: readonly Operation[]): number {
  return failed.filter((one) => stepName(one) === stepName(step)).length;
}

function stepName(step: Operation): string {
  return JSON.stringify([loopName(step), step.kind, step.subject]);
}

const longest = 80;

function causeText(loop: Operation, { step, tries }: Partial<Cause> = {}): string {
  const parts = step === undefined ? [] : [step.kind, step.subject, tries === 1 ? "" : `(${tries} tries)`];
  const name = parts.filter((part) => part !== "").join(" ");
  const text = [plainLine(name), plainLine(causeLine(step?.error || loop.error))]
    .filter((part) => part !== "")
    .join(": ");
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}
