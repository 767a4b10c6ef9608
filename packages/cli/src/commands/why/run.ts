import type { ComparedSide, Comparison } from "@tapedeck/client";
import { type ApiClient, apiAt } from "../../api/api.ts";
import { coloured } from "../../display/colour.ts";
import { comparisonText, sideLine } from "../../display/comparison.ts";
import { print, printJson } from "../../display/output.ts";
import { spokenSource } from "../../display/source-name.ts";
import { programName } from "../../program-name.ts";
import { fullLoopName, loopNames } from "../../sources/named-loop.ts";
import { namedSide } from "../../sources/named-side.ts";
import { newestToFail } from "../../sources/newest-to-fail.ts";

export type WhyOptions = { readonly url?: string; readonly json?: boolean; readonly source?: string };

export async function why(what: string | undefined, { url, json, source }: WhyOptions): Promise<void> {
  const api = apiAt(url);
  const { type, name } = await namedSide(api, what, source);
  const comparison = await api.get<Comparison>("/api/v1/compare", { left: name ?? (await newestToFail(api)) });
  if (json) {
    printJson(comparison);
    return;
  }
  const { left } = comparison;
  const isFailed = left.outcome === "failed" || left.failure !== null;
  // Without a failed one, a source's side is the newest.
  if (!isFailed && type === "source") {
    print(`Nothing has failed in ${spokenSource(left.source)}.`);
    print(sideLine(left));
    return;
  }
  print(comparisonText(comparison));
  print(`\n${(await places(left, api)).join("\n")}`);
}

/** Where there is more to see: the page, and the whole output. */
async function places(left: ComparedSide, api: ApiClient): Promise<string[]> {
  const { unit, session, failure, position } = left;
  const isLoop = unit === "loop";
  const path = isLoop ? `/loops/${fullLoopName(left)}` : `/sessions/${session}?at=${failure?.position ?? position}`;
  const output = isLoop ? (await loopNames(api, [left]))(left) : `--session ${session}`;
  return [
    `${coloured("dim", "page:  ")} ${api.base}${path}`,
    `${coloured("dim", "output:")} ${programName().here} logs ${output}${failure === null ? "" : " --failed"}`,
  ];
}
