import type { Comparison } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { comparisonText } from "../../display/comparison.ts";
import { print, printJson } from "../../display/output.ts";
import { sideOf } from "../side.ts";

export type CompareOptions = { readonly url?: string; readonly json?: boolean };

export async function compare(left: string, right: string, { url, json }: CompareOptions): Promise<void> {
  const sides = { left: sideOf(left), right: sideOf(right) };
  const comparison = await apiAt(url).get<Comparison>("/api/v1/compare", sides);
  if (json) printJson(comparison);
  else print(comparisonText(comparison));
}
