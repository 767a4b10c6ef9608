import type { Comparison } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { comparisonText } from "../../display/comparison.ts";
import { print, printJson } from "../../display/output.ts";
import { namedSide } from "../../sources/named-side.ts";

export type CompareOptions = { readonly url?: string; readonly json?: boolean };

export async function compare(left: string, right: string, { url, json }: CompareOptions): Promise<void> {
  const api = apiAt(url);
  const sides = { left: (await namedSide(api, left)).name, right: (await namedSide(api, right)).name };
  const comparison = await api.get<Comparison>("/api/v1/compare", sides);
  if (json) printJson(comparison);
  else print(comparisonText(comparison));
}
