import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import { ingestSettings } from "@tapedeck/ingest/for-cli/settings";
import { settingsReader } from "@tapedeck/shared/service/settings";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// The detailed rights of SQL readers are tested in services/query/src/db/access/readers.long.test.ts.

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
);
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let server: Postgres;
let stack: Stack;

/** Tapedeck's user owns its database and may create roles, as docs/team.md requires; it is no superuser. */
beforeAll(async () => {
  const dataDir = join(inject("serversFolder"), `postgres-${randomBytes(6).toString("hex")}`);
  server = await startPostgres({ dataDir, port: 0, persistent: false, fsync: false });
  cleanup.defer(() => server.stop());
  await server.ensureDatabase("another");
  const admin = new Client(server.url("postgres"));
  await admin.connect();
  await admin.query("create role tapedeck login createrole");
  await admin.query("create database tapedeck owner tapedeck");
  await admin.query("revoke connect on database another from public");
  await admin.end();
  const nats = cleanup.use(await startTestNats());
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(
    await startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: urlOf("tapedeck") },
      env: { TAPEDECK_POSTGRES_ANALYST_PASSWORD: "only reading" },
    }),
  );
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
});

function urlOf(user: string, password = "", database = "tapedeck"): string {
  const url = new URL(server.url(database));
  url.username = user;
  url.password = password;
  return url.href;
}

/** Undefined if Postgres executes it. */
async function refusal(url: string, statement: string): Promise<string | undefined> {
  const client = new Client(url);
  try {
    await client.connect();
    await client.query(statement);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end();
  }
}

describe("query's user", () => {
  it("records, answers and rebuilds without being a superuser", async () => {
    const { items } = JSON.parse((await stack.httpCall("GET", "/api/v1/operations?kind=build")).body);
    expect(items.length).toBeGreaterThan(0);
    expect((await stack.httpCall("POST", "/api/v1/rebuild")).body).toContain("complete");
  });

  it.each([
    ["another database", "select", /permission denied for database/, "another"],
    ["a database of its own making", "create database more", /permission denied/],
    ["files of the server", "select pg_read_file('postgresql.conf')", /permission denied/],
    ["programs", "copy (select 1) to program 'true'", /permission denied/],
    ["settings of the server", "alter system set fsync = off", /permission denied/],
    ["a superuser", "create role more superuser", /permission denied/],
  ])("gets no access to %s", async (_what, statement, reason, database = "tapedeck") => {
    expect(await refusal(urlOf("tapedeck", "", database), statement)).toMatch(reason);
  });
});

describe("the reader of SQL", () => {
  it("reads what was recorded", async () => {
    expect(await refusal(urlOf("tapedeck_analyst", "only reading"), "select * from tapedeck.loops")).toBeUndefined();
  });

  it.each([
    ["write", "update tapedeck.sources set project = 'x'"],
    [
      "write once it lifts its own read-only default",
      "set default_transaction_read_only = off; delete from tapedeck.events",
    ],
    ["make tables", "set default_transaction_read_only = off; create table tapedeck.mine (one int)"],
    ["see which login reads which workspace", "select * from tapedeck_private.workspace_logins"],
    ["see states of the fold", "select * from tapedeck_internal.fold_states"],
    ["become query's user", "set role tapedeck"],
    ["make roles", "set default_transaction_read_only = off; create role more"],
  ])("may not %s", async (_what, statement) => {
    expect(await refusal(urlOf("tapedeck_analyst", "only reading"), statement)).toMatch(
      /permission denied|read-only transaction|must be|cannot execute/,
    );
  });
});

it("the gateway and ingest know no address of Postgres: they ask query, or nobody", () => {
  const read = settingsReader({ env: {} });
  gatewaySettings(read);
  ingestSettings(read);
  expect(read.definitions().filter(({ key }) => key.startsWith("postgres."))).toEqual([]);
});
