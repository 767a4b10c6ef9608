import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { readConfig } from "@tapedeck/query/config";
import { startQuery } from "@tapedeck/query/query";
import { migrated } from "@tapedeck/query/testing/migrated";
import { write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { QueryMapStore, queriesOf } from "@tapedeck/shared/log/queries/query-map";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { startCli } from "tapedeck/testing/cli";
import { startUp } from "tapedeck/testing/up";
import { expect, it } from "vitest";
import { workspaceScenario } from "./two-workspaces.ts";

/** `tapedeck up` with the workspaces acme and globex, and a second query that has taken globex over. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-second-query-"));
  stack.defer(() => rmSync(cwd, { recursive: true, force: true }));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  writeFileSync(join(cwd, "tapedeck.yaml"), "workspace: acme\nsources: []\n");
  const up = await startUp({ cwd });
  stack.defer(async () => void (await up.stop()));
  const secrets = await loadSecrets(join(cwd, ".tapedeck", "secrets"));
  const user = { user: "tapedeck", pass: secrets.natsPassword };
  const servers = up.running.addresses.nats ?? "";
  const nats = stack.adopt(await connect({ servers, ...user }), (nc) => nc.close());
  for (const workspace of ["acme", "globex"] as const) {
    await using log = await openLog(nats, { workspace, syncKnown: true, timeoutMs: 20_000 });
    await write(log, workspaceScenario(workspace).events);
  }
  const database = stack.use(await freshDatabase(migrated));
  const advertise = `127.0.0.1:${await ownPort()}`;
  const env = {
    TAPEDECK_NATS_URL: `nats://${servers}`,
    TAPEDECK_NATS_USER: user.user,
    TAPEDECK_NATS_PASSWORD: user.pass,
    TAPEDECK_POSTGRES_URL: database.url,
    TAPEDECK_SERVICES_KEY: secrets.servicesKey,
    TAPEDECK_QUERY_ADVERTISE: advertise,
    TAPEDECK_QUERY_GRPC_PORT: advertise.split(":")[1] ?? "",
    TAPEDECK_QUERY_HEALTH_PORT: "0",
    TAPEDECK_QUERY_WORKSPACES: "globex",
  };
  const second = stack.use(await startQuery(readConfig({ env }), silentLogger));
  const map = new QueryMapStore(nats);
  const isTaken = async () => queriesOf(await map.read(), "globex").at === advertise;
  await until(isTaken, { message: "the second query to take globex over" });
  const client = stack.adopt(new Client(database.url), (one) => one.end());
  await client.connect();
  const owned = stack.move();
  return {
    advertise,
    second,
    async tapedeck(...args: readonly string[]) {
      await using cli = startCli([...args], { cwd });
      return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
    },
    /** Changes a row of the second query's tables, as a rebuild there does not keep it. */
    spoil: () => client.query("update tapedeck.operations set error = 'spoiled'"),
    spoiled: async () =>
      (await client.query("select count(*)::int as n from tapedeck.operations where error = 'spoiled'")).rows[0].n,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

it("commands on the server's machine ask the query that has a workspace, and know which one is away", async () => {
  await using on = await harness();
  const { tapedeck, advertise, second } = on;
  const line = (workspace: string, tables: string) =>
    expect.stringMatching(new RegExp(`^${workspace} .* ${tables}`, "m"));
  const isFresh = async () => (await tapedeck("workspace", "list")).out.includes(`up to date at ${advertise}`);
  await until(isFresh, { message: "the tables of both to be up to date" });
  const all = await tapedeck("workspace", "list");
  expect(all).toMatchObject({ code: 0, out: line("globex", `up to date at ${advertise}`) });
  expect(all.out).toEqual(line("acme", "up to date {2,}for ever"));
  expect(await tapedeck("workspace", "show", "globex")).toMatchObject({ out: expect.stringMatching(/^sources +3$/m) });

  await on.spoil();
  expect(await on.spoiled()).toBeGreaterThan(0);
  expect(await tapedeck("rebuild", "--workspace", "globex")).toMatchObject({ code: 0 });
  expect(await on.spoiled()).toBe(0);
  const nothing = 'tapedeck: nothing is recorded in the workspace "nosuch".\n';
  const unknown = await tapedeck("rebuild", "--workspace", "nosuch");
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining(nothing) });

  await second[Symbol.asyncDispose]();
  const without = await tapedeck("workspace", "list");
  expect(without).toMatchObject({ code: 0, out: line("globex", "query does not answer") });
  expect(without.out).toEqual(line("acme", "up to date"));
});
