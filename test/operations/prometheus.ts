import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lacking } from "@tapedeck/infra/docker/testing/on-machine";
import { spawnServer } from "@tapedeck/infra/local/server-process";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { inject } from "vitest";
import { stringify } from "yaml";

/** Why there is no Prometheus here; undefined: there is one. */
export const whyNoPrometheus = lacking(["prometheus"], { asRoot: false });

const rulesIn = (name: string) => join(import.meta.dirname, "../../infra/prometheus", name);

export type Sample = { readonly metric: Readonly<Record<string, string>>; readonly value: readonly [number, string] };

/** A real Prometheus. */
export type Prometheus = AsyncDisposable & { readonly query: (promql: string) => Promise<readonly Sample[]> };

/** Starts Prometheus, which scrapes these services twice a second, and evaluates Tapedeck's rules as often. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = await mkdtemp(join(inject("serversFolder"), "prometheus-"));
  const config = join(folder, "prometheus.yml");
  await writeFile(
    config,
    stringify({
      global: { scrape_interval: "500ms", scrape_timeout: "500ms", evaluation_interval: "500ms" },
      rule_files: ["alerts.yaml", "recording.yaml"].map(rulesIn),
      scrape_configs: [{ job_name: "tapedeck", static_configs: [{ targets: [...targets] }] }],
    }),
  );
  const address = `127.0.0.1:${await ownPort()}`;
  const server = await spawnServer({
    command: "prometheus",
    args: [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=${address}`],
    mark: config,
    logFile: join(folder, "log"),
    stopSignal: "SIGTERM",
  });
  const query = async (promql: string): Promise<readonly Sample[]> => {
    const answer = await fetch(`http://${address}/api/v1/query?${new URLSearchParams({ query: promql })}`);
    const { data, error } = (await answer.json()) as {
      readonly data?: { readonly result: readonly Sample[] };
      readonly error?: string;
    };
    if (data === undefined) throw new Error(`${promql}: ${error}`);
    return data.result;
  };
  const areUp = async () => (await query("up == 1").catch(() => [])).length === targets.length;
  await until(areUp, { message: "Prometheus to scrape all services" });
  return { query, [Symbol.asyncDispose]: () => server.stop() };
}
