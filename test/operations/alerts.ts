import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

const rule = z.strictObject({
  alert: z.string().regex(/^Tapedeck[A-Z]\w+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[smh]$/)
    .optional(),
  labels: z.strictObject({ severity: z.enum(["page", "ticket"]) }),
  annotations: z.strictObject({ summary: z.string(), runbook_url: z.string() }),
});

const groups = z.strictObject({ groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })) });

export type Alert = z.infer<typeof rule>;

/** The alerts that Tapedeck ships. */
export async function readAlerts(): Promise<readonly Alert[]> {
  const text = await readFile(join(import.meta.dirname, "../../infra/prometheus/alerts.yaml"), "utf8");
  return groups.parse(parse(text)).groups.flatMap(({ rules }) => rules);
}

const recordings = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(z.strictObject({ record: z.string().regex(/^tapedeck:\w+:\w+$/), expr: z.string() })),
    }),
  ),
});

export type Recording = { readonly record: string; readonly expr: string };

/** The recording rules that Tapedeck ships. */
export async function readRecordings(): Promise<readonly Recording[]> {
  const text = await readFile(join(import.meta.dirname, "../../infra/prometheus/recording.yaml"), "utf8");
  return recordings.parse(parse(text)).groups.flatMap(({ rules }) => rules);
}

export type Selector = { readonly metric: string; readonly labels: readonly string[] };

const words = /[a-zA-Z_]\w*/g;
/** The PromQL words in the rules. Any other word is a metric. */
const promQl = new Set([
  "sum",
  "by",
  "min",
  "max",
  "unless",
  "or",
  "and",
  "offset",
  "increase",
  "delta",
  "histogram_quantile",
  "min_over_time",
  "time",
]);

/** Returns the metrics that an expression selects, each with the labels that it names with them. */
export function selectorsIn(expression: string): readonly Selector[] {
  const grouping = /\bby\s*\(([^)]*)\)/g;
  const grouped = [...expression.matchAll(grouping)].flatMap(([, labels = ""]) => labels.match(words) ?? []);
  const rest = expression.replaceAll(grouping, " ").replaceAll(/\[\w+\]|offset \w+/g, " ");
  const selector = /([a-zA-Z_]\w*)(?:\{([^}]*)\})?/g;
  return [...rest.matchAll(selector)].flatMap(([, metric = "", within = ""]) => {
    if (promQl.has(metric)) return [];
    const own = [...within.matchAll(/(\w+)\s*[=!]~?\s*"[^"]*"/g)].map(([, label = ""]) => label);
    return [{ metric, labels: [...own, ...grouped] }];
  });
}
