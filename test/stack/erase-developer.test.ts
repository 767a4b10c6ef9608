import { jetstreamManager } from "@nats-io/jetstream";
import { scenario } from "@tapedeck/query/testing/scenario";
import { auditEntryOf } from "@tapedeck/shared/audit/entry";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import { eventsIn } from "@tapedeck/shared/log/batch/batch";
import { DeveloperErasureStore, developerKey } from "@tapedeck/shared/log/erasures/developer-erasures";
import { answerTablesPassed } from "@tapedeck/shared/log/erasures/tables-passed";
import { QueryMapStore } from "@tapedeck/shared/log/queries/query-map";
import { streamOf, workspaceOfStream } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect, type NatsConnection } from "nats";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

/** A name that is in nothing else. */
const developer = "alizarin";
const ids = ["01KE3M9Z6Q4W8T2V5X7Y9A1B40", "01KE3M9Z6Q4W8T2V5X7Y9A1B41", "01KE3M9Z6Q4W8T2V5X7Y9A1B42"] as const;

let on: SeededStack;
let database: pg.Client;
let nats: NatsConnection;
beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  nats = cleanup.adopt(await connect({ servers: on.stack.parts.nats.url }), (one) => one.close());
  database = new pg.Client({ connectionString: on.stack.database });
  await database.connect();
  cleanup.defer(() => database.end());
});

function recorded(name: string, project: string, sessions: readonly string[], ends = true) {
  const source = sourceName({ workspace: "acme", developer: name, project, upstream: "skaffold" });
  const script = scenario(source);
  script.add({
    kind: "source.added",
    detail: { $case: "source_detail", value: { developer_name: name, project_name: project } },
  });
  for (const id of sessions) {
    const session = script.session(id);
    session.started();
    session.build(`image-of-${project}`, "started");
    session.build(`image-of-${project}`, "failed");
    if (ends) session.ended();
  }
  return script.events;
}

/** The messages of logs may be compressed. */
function textOf(stream: string, data: Uint8Array): string {
  const parts = workspaceOfStream(stream) === undefined || data.length === 0 ? [data] : eventsIn(data);
  return parts.map((part) => new TextDecoder().decode(part)).join(" ");
}

/** Where the servers still have the name, in any subject, message or row. The end of a lease goes after a minute. */
async function places(): Promise<string[]> {
  const found: string[] = [];
  const jsm = await jetstreamManager(nats);
  for await (const { config, state } of jsm.streams.list()) {
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
      const message = await jsm.streams.getMessage(config.name, { seq });
      const text = message === null ? "" : `${message.subject} ${textOf(config.name, message.data)}`;
      const goes = message?.data.length === 0 && message.header.get("Nats-TTL") === "60s";
      if (text.includes(developer) && !goes) found.push(`${config.name} ${message?.subject}`);
    }
  }
  const tables = await database.query<{ name: string }>(`
    select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname like 'tapedeck%'`);
  for (const { name } of tables.rows) {
    const { rows } = await database.query(`select from ${name} t where t::text like '%${developer}%'`);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

const erase = async (name: string) => {
  const { status, body } = await on.stack.httpCall("DELETE", `/api/v1/developers/${name}`);
  const lines = body.trim().split("\n");
  return { status, lines: lines.map((line) => JSON.parse(line)) };
};

const get = async (path: string) => (await on.stack.httpCall("GET", `/api/v1/${path}`)).body;

async function madeToken() {
  const request = { name: `${developer}'s laptop`, workspace: "acme", developer, roles: ["recorder" as const] };
  const made = makeToken({ ...request, lifetimeMs: 3_600_000 });
  await (await openTokenStore(nats)).create(made);
  return made.record;
}

it("removes a developer from log, tables and audit, lists exports and tokens, and leaves the others", async () => {
  const [one, two, bobs] = ids;
  await on.seed([
    ...recorded(developer, "shop", [one, two]),
    ...recorded("bob", "shop", [bobs]),
    ...recorded(developer, "web", []),
  ]);
  const { id, name } = await madeToken();
  const audit = await openAuditStore(nats);
  const entry = { workspace: "acme", kind: "token", who: name, by: id } as const;
  await audit.append(auditEntryOf({ ...entry, action: "session.exported", about: { sessions: [two] } }));
  await audit.append(
    auditEntryOf({ ...entry, action: "control.called", about: { source: `acme/${developer}/shop/skaffold` } }),
  );
  const person = { kind: "person", who: `${developer} (sso.example)`, by: "sso.example 17" } as const;
  await audit.append(auditEntryOf({ ...person, workspace: "acme", action: "sign-in.accepted", about: {} }));
  const before = await places();
  expect(new Set(before.map((place) => place.split(" ")[0]))).toEqual(
    expect.objectContaining(new Set([streamOf("acme"), "TAPEDECK_AUDIT", "tapedeck.sources", "tapedeck.sessions"])),
  );
  const bobsBefore = JSON.parse(await get("events?developer=bob&limit=1000")).items;

  const { status, lines } = await erase(developer);
  expect(status).toBe(200);
  expect(lines.at(-1)).toEqual({ type: "complete" });
  expect(lines.at(-2)).toEqual({
    type: "progress",
    developer,
    state: "done",
    sessions: 2,
    erased: 2,
    waitsFor: "",
    exports: [{ time: expect.any(String), who: "erased", kind: "token" }],
    tokens: [{ id, name }],
  });

  // The token is not removed, only named.
  await (await openTokenStore(nats)).revoke(id);
  expect((await places()).filter((place) => !place.startsWith("KV_TAPEDECK_TOKENS"))).toEqual([]);
  for (const path of ["sources", "sessions", "events?after=start&limit=1000", "operations?limit=1000", "audit"])
    expect(await get(path)).not.toContain(developer);
  expect(JSON.parse(await get("events?developer=bob&limit=1000")).items).toEqual(bobsBefore);

  const entries = (await get("audit"))
    .trim()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  expect(entries.map(({ action, who }) => `${action} ${who}`)).toEqual(
    expect.arrayContaining(["session.exported erased", "control.called erased", "sign-in.accepted erased"]),
  );
  const source = "acme/erased/shop/skaffold";
  expect(entries.find(({ action }) => action === "control.called")).toMatchObject({ about: { source } });
  expect(entries.filter(({ action }) => action.startsWith("developer."))).toMatchObject([
    { action: "developer.erasure-begun", about: { developer: "erased" } },
    { action: "developer.erased", about: { developer: "erased", sessions: 2 } },
  ]);

  // Once more: it is known to be over.
  expect((await erase(developer)).lines.at(-2)).toMatchObject({ state: "done", sessions: 2 });
});

it("refuses a developer who is being recorded, with the source's name, and one who was never recorded", async () => {
  await on.seed(recorded("carol", "shop", ["01KE3M9Z6Q4W8T2V5X7Y9A1B43"], false));
  const { status, lines } = await erase("carol");
  expect([status, lines[0].error]).toEqual([
    400,
    expect.objectContaining({
      code: "invalid_argument",
      message: "acme/carol/shop/skaffold is being recorded (session 01KE3M9Z6Q4W8T2V5X7Y9A1B43): end it first",
    }),
  ]);
  expect((await get("sessions")).includes("01KE3M9Z6Q4W8T2V5X7Y9A1B43")).toBe(true);
  expect((await erase("nobody")).status).toBe(404);
});

it("a developer who is recorded again afterwards may be erased again", async () => {
  await on.seed(recorded(developer, "shop", ["01KE3M9Z6Q4W8T2V5X7Y9A1B44"]));
  expect(await get("sessions")).toContain("01KE3M9Z6Q4W8T2V5X7Y9A1B44");
  expect((await erase(developer)).lines.at(-2)).toMatchObject({ state: "done", sessions: 1 });
  expect(await places()).toEqual([]);
});

it("waits for every query whose tables may have the name, not only for the one that answers", async () => {
  await on.seed(recorded(developer, "shop", ["01KE3M9Z6Q4W8T2V5X7Y9A1B45"]));
  const map = new QueryMapStore(nats);
  const second = "second:7053";
  await map.change("acme", (entry) => ({ ...entry, also: [second] }));
  const erasing = erase(developer);
  const erasures = new DeveloperErasureStore(nats);
  const waits = async () => (await erasures.of(developerKey({ workspace: "acme", developer })))?.waitsFor;
  await until(async () => (await waits()) === "query, whose tables still have the name", {
    message: "the erasure to wait for the second query",
  });
  expect(await places()).toContainEqual(expect.stringContaining(streamOf("acme")));
  using _ = answerTablesPassed(nats, second, async () => true);
  expect((await erasing).lines.at(-2)).toMatchObject({ state: "done", sessions: 1 });
  await map.change("acme", (entry) => ({ ...entry, also: [] }));
  expect(await places()).toEqual([]);
});
