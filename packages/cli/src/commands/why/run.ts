import type { Comparison } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { comparisonText } from "../../display/comparison.ts";
import { print, printJson } from "../../display/output.ts";
import { spokenSource } from "../../display/source-name.ts";
import { sideOf } from "../side.ts";

export type WhyOptions = { readonly url?: string; readonly json?: boolean; readonly source?: string };

export async function why(loop: string | undefined, { url, json, source }: WhyOptions): Promise<void> {
  const named = loop ?? source;
  const left = named === undefined ? undefined : sideOf(named);
  const comparison = await apiAt(url).get<Comparison>("/api/v1/compare", { left });
  if (json) {
    printJson(comparison);
    return;
  }
  const { outcome, failure, source: full } = comparison.left;
  // Without a failed one, it is the newest.
  const isGood = outcome !== "failed" && failure === null;
  print(
    isGood && loop === undefined ? `No failures are recorded for ${spokenSource(full)}.` : comparisonText(comparison),
  );
}
