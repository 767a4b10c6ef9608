import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { letReadersIn } from "@tapedeck/query/db/access/grants";
import { createLogin } from "@tapedeck/query/db/access/workspace-logins";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { migrated } from "@tapedeck/query/testing/migrated";
import { Client } from "pg";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { dashboards, fillDashboards } from "./tables/dashboards.ts";
import { type Plan, scans } from "./testing/plan-scans.ts";
import { testParts } from "./testing/test-parts.ts";

testParts(["views"]);

const size = 20_000;
const minute = 60_000;
const limits = {
  connections: 5,
  statementMs: minute,
  idleTransactionMs: minute,
  transactionMs: minute,
  lockMs: minute,
  tempBytes: 1024 ** 3,
};

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let owner: Client;
let login: Client;

beforeAll(async () => {
  // A server of its own, because roles belong to the whole server.
  const dataDir = join(inject("serversFolder"), `postgres-${randomBytes(6).toString("hex")}`);
  const server = await startPostgres({ dataDir, port: 0, persistent: false, fsync: false });
  cleanup.defer(() => server.stop());
  await server.ensureDatabase("tapedeck");
  const url = server.url("tapedeck");
  await migrated.fill(url);
  const database = cleanup.use(openDatabase({ url, connections: 2 }));
  await letReadersIn(database);
  const connected = async (at: string) => {
    const client = new Client(at);
    await client.connect();
    cleanup.defer(() => client.end());
    return client;
  };
  owner = await connected(url);
  await owner.query(
    "insert into tapedeck_internal.checkpoint (workspace, projection, epoch, position) values ('default', '', 'e', 0)",
  );
  await fillDashboards(url, size);
  const made = await createLogin(database, { workspace: "default", limits });
  const own = new URL(url);
  own.username = made.login;
  own.password = made.password;
  login = await connected(own.href);
});

it.each(Object.entries(dashboards))(
  "a login of one workspace gets %s without reading it for each row",
  async (_, asked) => {
    const { rows } = await login.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
      `explain (analyze, format json) ${asked}`,
    );
    const [{ Plan: plan } = { Plan: {} }] = rows[0]?.["QUERY PLAN"] ?? [];
    const count = scans(plan).reduce((sum, { rows }) => sum + rows, 0);
    expect({ count, isFew: count <= 4 * size }).toEqual({ count, isFew: true });
  },
);

it("a login of one workspace and the owner see the same flaky artifacts", async () => {
  const asked = "select * from tapedeck.flaky_artifacts order by project, artifact, day";
  const [own, all] = [await login.query(asked), await owner.query(asked)];
  expect(all.rows.length).toBeGreaterThan(50);
  expect(own.rows).toEqual(all.rows);
});
