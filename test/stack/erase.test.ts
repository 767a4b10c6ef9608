import { scenario } from "@tapedeck/query/testing/scenario";
import { eventsIn, sessionOf } from "@tapedeck/shared/log/batch/batch";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { transports } from "../transports/all-transports.ts";
import { isCaughtUp, readUntil } from "../transports/reading.ts";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

// At full length, with kills and with recording beside it: test/faults/maintenance/erase.long.test.ts.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

let on: SeededStack;
let database: pg.Client;
beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  database = new pg.Client({ connectionString: on.stack.database });
  await database.connect();
  cleanup.defer(() => database.end());
});

const call = async (method: string, path: string) => (await on.stack.httpCall(method, `/api/v1/${path}`)).body;

/** Seeds a session that is over, each event in a message of its own, and another one around it. */
async function seeded(session: string, builds: number) {
  const source = scenario();
  const [secret, other] = [source.session(session), source.session(`${session.slice(0, -1)}9`)];
  secret.started();
  other.started();
  for (let number = 0; number < builds; number++) {
    secret.build(`hush-${number}`, "started");
    if (number % 10 === 0) other.build(`kept-${number}`, "started");
  }
  secret.ended();
  other.ended();
  await on.seed(source.events);
  return { session, other: other.session, events: source.events.filter((event) => event.session === session).length };
}

/** Asks to erase, and leaves after the first answer. */
async function askAndLeave(session: string) {
  const leave = new AbortController();
  const response = await fetch(`http://${on.stack.http}/api/v1/sessions/${session}`, {
    method: "DELETE",
    signal: leave.signal,
  });
  expect(response.status).toBe(200);
  const { value } = (await response.body?.getReader().read()) ?? {};
  leave.abort();
  return JSON.parse(new TextDecoder().decode(value).split("\n")[0] ?? "");
}

const progressOf = async (session: string) =>
  (await call("DELETE", `sessions/${session}`))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

/** The events of the session that any reader still gets. */
async function readable(session: string) {
  const found: Record<string, unknown> = {};
  for (const transport of transports) {
    const endpoint = { grpc: on.stack.grpc, http: on.stack.http };
    for (const filter of [{}, { sessions: [session] }]) {
      const messages = await readUntil(transport, endpoint, { after: "start", filter }, isCaughtUp);
      const ids = messages.flatMap(({ event }) => (event?.id.startsWith(session) ? [event.id] : []));
      found[`${transport.name} ${Object.keys(filter)}`] = ids;
    }
  }
  found.page = JSON.parse(await call("GET", `events?session=${session}&kind=build.*`)).items;
  found.text = (await call("GET", "events?limit=1000")).includes("hush-");
  found.sessions = (await call("GET", "sessions")).includes(session);
  found.operations = (await call("GET", "operations?limit=1000")).includes("hush-");
  const { rows } = await database.query(
    "select position from tapedeck.events where session = $1 and kind like 'build%'",
    [session],
  );
  found.sql = rows;
  return found;
}

const nothing = {
  page: [],
  text: false,
  sessions: false,
  operations: false,
  sql: [],
  ...Object.fromEntries(transports.flatMap(({ name }) => [`${name} `, `${name} sessions`].map((key) => [key, []]))),
};

/** How many events of the session the log itself still holds. */
async function held(session: string) {
  const { lastOffset } = await on.log.reader.bounds();
  const range = { first: 1, last: sequenceOf(lastOffset), subjects: [] };
  let count = 0;
  for await (const { data } of on.log.stored(range, new AbortController().signal)) {
    count += eventsIn(data).filter((event) => sessionOf(event) === session).length;
  }
  return count;
}

it("an erasure goes on without its caller, says how far it is, and nothing is readable from its first answer on", async () => {
  const { session, other, events } = await seeded("01KE3M9Z6Q4W8T2V5X7Y9A1B30", 600);
  // What a follower has read is in the gateway's memory.
  const tail = readUntil(transports[0] ?? expect.fail(), on.stack, { after: "start" }, isCaughtUp);
  expect((await tail).filter(({ event }) => event?.id.startsWith(session)).length).toBeGreaterThan(500);

  const first = await askAndLeave(session);
  expect(await held(session)).toBeGreaterThan(1);
  expect(first).toMatchObject({ type: "progress", state: "removing", source: "acme/alice/shop/skaffold" });
  expect(await readable(session)).toEqual(nothing);

  const lines = await progressOf(session);
  expect(lines.at(-1)).toEqual({ type: "complete" });
  expect(lines.at(-2)).toMatchObject({ state: "done", events, removed: events });
  // The mark remains.
  expect(await held(session)).toBe(1);
  expect(await readable(session)).toEqual(nothing);
  expect(await progressOf(session)).toMatchObject([{ state: "done", events, removed: events }, { type: "complete" }]);
  expect(JSON.parse(await call("GET", `sessions?session=${other}`)).items).toHaveLength(1);

  const actions = async () => (await call("GET", "audit")).match(/"action":"session[^}]*/g);
  expect(await until(actions, { message: "the audit log" })).toEqual([
    expect.stringMatching(/"session.erasure-begun".*"session":"01KE3M9Z6Q4W8T2V5X7Y9A1B30"/),
    expect.stringMatching(/"session.erased".*"events":602/),
  ]);
});

it("a session that is not there is unknown, before and after others were erased", async () => {
  const { status, body } = await on.stack.httpCall("DELETE", "/api/v1/sessions/01KE3M9Z6Q4W8T2V5X7Y9A1B3X");
  expect([status, JSON.parse(body).error.code]).toEqual([404, "unknown_session"]);
});
