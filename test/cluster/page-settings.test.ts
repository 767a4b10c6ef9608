import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readConfig as gatewayConfig } from "@tapedeck/gateway/config";
import { readConfig as ingestConfig } from "@tapedeck/ingest/config";
import { readConfig as queryConfig } from "@tapedeck/query/config";
import { loadSettingsFile } from "@tapedeck/shared/service/settings";
import { expect, inject, it } from "vitest";
import { parse, stringify } from "yaml";

type Settings = Readonly<Record<string, unknown>>;

/** The page's blocks of YAML: the settings of every cluster, and what is beside them with the Debian package. */
async function blocksOfPage(): Promise<readonly Settings[]> {
  const page = await readFile(join(import.meta.dirname, "../../docs/cluster.md"), "utf8");
  return [...page.matchAll(/^( *)```yaml\n(.*?)^\1```/gms)].map(([, , block = ""]) => parse(block));
}

it("every service accepts the settings that the page has for the Debian package", async () => {
  const [all = {}, more = {}, ...others] = await blocksOfPage();
  expect(others).toEqual([]);
  const { services: _key, postgres: _url, ...shared } = all;
  const merged = Object.fromEntries(
    Object.keys({ ...shared, ...more }).map((name) => {
      const [before, after] = [shared[name], more[name]];
      const isMap = typeof before === "object" && typeof after === "object";
      return [name, isMap ? { ...before, ...after } : (after ?? before)];
    }),
  );
  const file = join(await mkdtemp(join(inject("serversFolder"), "page-")), "tapedeck.yaml");
  await writeFile(file, stringify(merged));
  // What the package's files of variables have.
  const env = { TAPEDECK_SERVICES_KEY: "the-services-key", TAPEDECK_POSTGRES_URL: "postgres://pg-1,pg-2/tapedeck" };
  const sources = { env, file: loadSettingsFile(file) };
  for (const read of [ingestConfig, queryConfig, gatewayConfig]) {
    expect(read(sources)).toMatchObject({ nats: { replicas: 3, ca: "/etc/tapedeck/ca.pem" } });
  }
});
