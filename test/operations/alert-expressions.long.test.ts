import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, it } from "vitest";
import { stringify } from "yaml";
import { type AlertCase, alertCases } from "./alert-cases.ts";
import { type Alert, readAlerts } from "./alerts.ts";

const run = promisify(execFile);
const rulesFile = join(import.meta.dirname, "../../infra/prometheus/alerts.yaml");

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

it.skipIf(!hasPromtool)(`Prometheus fires each alert when it is meant to, and not before${without}`, async () => {
  const alerts = await readAlerts();
  const tests = alerts.flatMap((alert) => (alertCases[alert.alert] ?? []).map((each) => ruleTest(alert, each)));
  const file = join(await mkdtemp(join(inject("serversFolder"), "alerts-")), "tests.yaml");
  await writeFile(file, stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
  const said = await run("promtool", ["test", "rules", file]).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string; readonly stderr: string }) => error.stdout + error.stderr,
  );
  expect(said).toMatch(/^Unit Testing: .*\n\s*SUCCESS\s*$/);
});
