import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, it } from "vitest";
import { stringify } from "yaml";
import { type AlertCase, alertCases } from "./alert-cases.ts";
import { type Alert, readAlerts, readRecordings } from "./alerts.ts";
import { recordingCases } from "./recording-cases.ts";

const run = promisify(execFile);
const rulesIn = (name: string) => join(import.meta.dirname, "../../infra/prometheus", name);

const hasPromtool = await run("promtool", ["--version"]).then(
  () => true,
  () => false,
);
const without = hasPromtool ? "" : " (promtool is not here: it comes with Debian's prometheus)";

/** A case as promtool's tests of rules have it. */
function ruleTest({ alert, labels, annotations }: Alert, { series, quietAt, firesAt, ...fired }: AlertCase) {
  const expected = {
    exp_labels: { ...fired.labels, ...labels },
    exp_annotations: { ...annotations, summary: fired.summary },
  };
  return {
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [
      ...quietAt.map((time) => ({ eval_time: time, alertname: alert, exp_alerts: [] })),
      { eval_time: firesAt, alertname: alert, exp_alerts: [expected] },
    ],
  };
}

it("every alert has samples for which it fires, and for which it does not", async () => {
  const alerts = await readAlerts();
  expect(Object.keys(alertCases).toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  for (const cases of Object.values(alertCases)) {
    expect(cases.every(({ quietAt }) => quietAt.length > 0)).toBe(true);
  }
});

it("every recording rule has samples of which its figures are known", async () => {
  const records = (await readRecordings()).map(({ record }) => record);
  expect(Object.keys(recordingCases).toSorted()).toEqual(records.toSorted());
});

/** Runs the tests with the rules of a file. Returns what promtool reports. */
async function promtool(rules: string, tests: readonly unknown[]): Promise<string> {
  const file = join(await mkdtemp(join(inject("serversFolder"), "rules-")), "tests.yaml");
  await writeFile(file, stringify({ rule_files: [rulesIn(rules)], evaluation_interval: "1m", tests }));
  return run("promtool", ["test", "rules", file]).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string; readonly stderr: string }) => error.stdout + error.stderr,
  );
}

it.skipIf(!hasPromtool)(`Prometheus fires each alert when it is meant to, and not before${without}`, async () => {
  const alerts = await readAlerts();
  const tests = alerts.flatMap((alert) => (alertCases[alert.alert] ?? []).map((each) => ruleTest(alert, each)));
  expect(await promtool("alerts.yaml", tests)).toMatch(/^Unit Testing: .*\n\s*SUCCESS\s*$/);
});

it.skipIf(!hasPromtool)(`Prometheus records the figures of the last hour${without}`, async () => {
  const tests = Object.entries(recordingCases).map(([record, { series, records }]) => ({
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        // To a hundredth: an increase over samples is not exact.
        expr: `round(${record}, 0.01)`,
        eval_time: "60m",
        exp_samples: records.map(({ labels, value }) => ({ labels, value })),
      },
    ],
  }));
  expect(await promtool("recording.yaml", tests)).toMatch(/^Unit Testing: .*\n\s*SUCCESS\s*$/);
});
