import { expect, it } from "vitest";
import { readAlerts, readRecordings, selectorsIn } from "./alerts.ts";
import { namesOf, servedMetrics } from "./served-metrics.ts";

/** Prometheus itself makes this metric, and these labels. */
const ofPrometheus = { metric: "up", labels: ["job", "instance"] };

it("every metric and label in the alerts and recording rules is one that the services serve", async () => {
  const texts = await servedMetrics();
  const served = new Set(namesOf(texts));
  const labels = new Map<string, Set<string>>();
  for (const [, name = "", within = ""] of texts.join("\n").matchAll(/^([a-z]\w*)\{(.*)\} \S+$/gm)) {
    const known = labels.get(name) ?? new Set(ofPrometheus.labels);
    labels.set(name, known);
    for (const [, label = ""] of within.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label);
  }

  const alerts = await readAlerts();
  const rules = [...alerts, ...(await readRecordings()).map(({ record, expr }) => ({ alert: record, expr }))];
  const selectors = rules.flatMap(({ alert, expr }) => selectorsIn(expr).map((each) => ({ alert, ...each })));
  expect(alerts.length).toBeGreaterThan(10);
  expect(new Set(selectors.map(({ alert }) => alert)).size).toBe(rules.length);
  const isServed = (metric: string) => served.has(metric) || served.has(metric.replace(/_(bucket|sum|count)$/, ""));
  expect(selectors.filter(({ metric }) => !isServed(metric) && metric !== ofPrometheus.metric)).toEqual([]);
  // A metric without any value yet has no labels to compare.
  const unknown = selectors.flatMap(({ alert, metric, labels: expected }) =>
    expected.filter((label) => labels.get(metric)?.has(label) === false).map((label) => ({ alert, metric, label })),
  );
  expect(unknown).toEqual([]);
  expect(labels.get("tapedeck_ready")).toEqual(new Set([...ofPrometheus.labels, "check", "service"]));
});

it("names the metrics and labels of an expression", () => {
  expect(selectorsIn('sum by (instance, outcome) (increase(a_total{what="x", source=~".+"}[10m])) > 10')).toEqual([
    { metric: "a_total", labels: ["what", "source", "instance", "outcome"] },
  ]);
  expect(selectorsIn("a > 0 unless a == (b offset 1d)").map(({ metric }) => metric)).toEqual(["a", "a", "b"]);
});
