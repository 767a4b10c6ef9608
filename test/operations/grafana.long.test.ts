import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onMachine } from "@tapedeck/infra/docker/testing/on-machine";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type AllRecordings, startAllRecordings } from "../stack/all-recordings.ts";
import { type Prometheus, startPrometheus, whyNoPrometheus } from "./prometheus.ts";

type Target = { readonly rawSql?: string; readonly expr?: string; readonly format?: string };
type Panel = { readonly title: string; readonly targets: readonly Target[] };
type Dashboard = {
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list?: readonly { readonly name: string; readonly query: string }[] };
};

const root = join(import.meta.dirname, "../..");
const folder = join(root, "infra/grafana/json");
const dashboards = readdirSync(folder).map((name): Dashboard => JSON.parse(readFileSync(join(folder, name), "utf8")));

/** The queries of all panels, each with where it is. */
const targets = dashboards.flatMap(({ title, panels }) =>
  panels.flatMap((panel) => panel.targets.map((target) => ({ place: `${title}, ${panel.title}`, ...target }))),
);

/** What is empty in a Tapedeck that is well. */
const isEmptyWhenWell = /Alerts|Events that could not be applied|Flaky artifacts/;

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let all: AllRecordings;
let prometheus: Prometheus | undefined;
let analyst: Client;

beforeAll(async () => {
  all = cleanup.use(await startAllRecordings());
  const { ingestHealth, queryHealth, http, database } = all.stack;
  if (whyNoPrometheus === undefined) prometheus = cleanup.use(await startPrometheus([ingestHealth, queryHealth, http]));
  await all.play();
  analyst = cleanup.adopt(new Client(database), (client) => client.end());
  await analyst.connect();
  await analyst.query("set role tapedeck_analyst");
});

/** A query as Grafana sends it, of all time. `chosen`: by the name of a variable; what is not there is any. */
function sent(query: string, chosen: Readonly<Record<string, readonly string[]>> = {}): string {
  return query
    .replaceAll(/\$__timeFilter\(([^()]*)\)/g, "$1 between '2000-01-01T00:00:00Z' and '2100-01-01T00:00:00Z'")
    .replaceAll("$__rate_interval", "1h")
    .replaceAll(/\$\{(\w+):regex\}/g, (_, name) => chosen[name]?.join("|") ?? ".*");
}

/** The values that Grafana puts in the place of a variable, all of those that there are. */
async function valuesOf(name: string): Promise<readonly string[]> {
  const query = dashboards.flatMap(({ templating }) => templating.list ?? []).find((one) => one.name === name)?.query;
  const { rows } = await analyst.query(sent(query ?? ""));
  return rows.map((row) => row[name]);
}

describe("every query of the dashboards", () => {
  it("of the tables returns rows to the analyst, with the columns that a graph needs", async () => {
    const values = { workspace: await valuesOf("workspace"), project: await valuesOf("project") };
    expect(values).toEqual({ workspace: ["default"], project: expect.arrayContaining(["shop"]) });
    const own = targets.filter(({ rawSql }) => rawSql !== undefined);
    expect(own.length).toBeGreaterThan(15);
    for (const { place, rawSql = "", format } of own) {
      const answerTo = async (chosen?: Parameters<typeof sent>[1]) =>
        analyst.query(sent(rawSql, chosen)).catch((cause) => {
          throw new Error(`${place}: ${cause.message}`, { cause });
        });
      const { rows, fields } = await answerTo();
      expect((await answerTo(values)).rows, place).toEqual(rows);
      for (const name of ["workspace", "project"]) {
        if (rawSql.includes(":regex") && rows.length > 0)
          expect((await answerTo({ [name]: ["none"] })).rows, `${place}, of no ${name}`).not.toEqual(rows);
      }
      if (!isEmptyWhenWell.test(place)) expect(rows, place).not.toEqual([]);
      if (format !== "time_series") continue;
      expect(fields[0]?.name, place).toBe("time");
      // timestamptz
      expect(fields[0]?.dataTypeID, place).toBe(1184);
    }
  });

  it.skipIf(whyNoPrometheus !== undefined)(
    `of the metrics returns samples of a real Prometheus${whyNoPrometheus ? ` (${whyNoPrometheus})` : ""}`,
    async () => {
      const query = async (promql: string) => (await prometheus?.query(promql)) ?? [];
      const { rows } = await analyst.query(`
        select kind, case when cache_hit then 'cached' else outcome end as outcome, count(*)::int as count from tapedeck.operations
        where kind in ('loop', 'build', 'test', 'deploy', 'command') and outcome is not null and not injected
          and not (kind = 'build' and subject = '') group by 1, 2 order by 1, 2`);
      const counted = async () => {
        const samples = await query("sum by (kind, outcome) (tapedeck_operations_total)");
        return samples
          .map(({ metric: { kind, outcome }, value: [, count] }) => ({ kind, outcome, count: Number(count) }))
          .toSorted((a, b) => (`${a.kind} ${a.outcome}` < `${b.kind} ${b.outcome}` ? -1 : 1));
      };
      await until(async () => JSON.stringify(await counted()) === JSON.stringify(rows), {
        message: "Prometheus to have the counts of the tables",
      });
      expect(rows.length).toBeGreaterThan(4);
      // A rate needs two samples.
      await until(async () => (await query("count_over_time(tapedeck_wait_seconds_sum[1h]) > 2")).length > 0, {
        message: "two scrapes",
      });

      const own = targets.filter(({ expr }) => expr !== undefined);
      expect(own.length).toBeGreaterThan(12);
      for (const { place, expr = "" } of own) {
        // At any time of the test, as a graph has it: what has ended has no spill any more.
        const samples = await query(`last_over_time((${sent(expr)})[10m:1s])`);
        if (!isEmptyWhenWell.test(place)) expect(samples, place).not.toEqual([]);
      }
      const wellRecorded = await query('{__name__=~"tapedeck:.+"}');
      expect(new Set(wellRecorded.map(({ metric }) => metric.__name__)).size).toBeGreaterThanOrEqual(4);
      expect(await query('ALERTS{alertstate="firing"}')).toEqual([]);
    },
  );
});

it("the lines of docs/grafana.md can be typed", async () => {
  const page = readFileSync(join(root, "docs/grafana.md"), "utf8");
  const blocks = [...page.matchAll(/^```\n(.*?)^```/gms)].map(([, block = ""]) => block.trim().split("\n"));
  const [[compose = "", curl = "", promtool = ""] = [], variables = []] = blocks;
  const profile = compose.match(/^docker compose --file (\S+) --profile (\w+) up --build --wait /);
  const { services } = parse(readFileSync(join(root, profile?.[1] ?? ""), "utf8"), { merge: true });
  expect(services.grafana.profiles).toContain(profile?.[2]);
  expect(services.prometheus.profiles).toContain(profile?.[2]);

  const said = await onMachine("sh", ["-c", curl.replace("127.0.0.1:7062", all.stack.queryHealth)], root);
  expect(said).toMatch(/^tapedeck_operations_total\{.*kind="loop",outcome="succeeded"\} \d+$/m);
  if (whyNoPrometheus === undefined) expect(await onMachine("sh", ["-c", promtool], root)).toContain("SUCCESS");

  const sources = readFileSync(join(root, "infra/grafana/provisioning/datasources/tapedeck.yaml"), "utf8");
  const used = new Set([...sources.matchAll(/\$(TAPEDECK_\w+)/g)].map(([, name]) => name));
  expect(new Set(variables.map((line) => line.split("=")[0]))).toEqual(used);
});
