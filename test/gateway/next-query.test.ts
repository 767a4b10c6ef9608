import { readConfig } from "@tapedeck/query/config";
import { type Query, startQuery } from "@tapedeck/query/query";
import { migrated } from "@tapedeck/query/testing/migrated";
import { scenario, shop } from "@tapedeck/query/testing/scenario";
import { endOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { defaultQuery, QueryMapStore, queriesOf } from "@tapedeck/shared/log/queries/query-map";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// A workspace has changed to its next query, and the tables of that one are behind those that have answered before.

/** The query that is left keeps its rows for at least so long. */
const env = { TAPEDECK_LIMITS_QUERY: "10m" };

/** Keeps the projection of a database where it is. Its tables can be read meanwhile. */
async function holdTables(url: string) {
  await using cleanup = new AsyncDisposableStack();
  const connect = async () => {
    const client = cleanup.adopt(new Client(url), (one) => one.end());
    await client.connect();
    return client;
  };
  const [holding, other] = [await connect(), await connect()];
  await holding.query("begin");
  await holding.query("lock table tapedeck_internal.checkpoint in share mode");
  const owned = cleanup.move();
  return {
    release: () => holding.query("commit"),
    /** Changes the builds' subject, so that answers show which database they are from. */
    rename: (subject: string) =>
      other.query("update tapedeck.operations set subject = $1 where kind = 'build'", [subject]),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Asks for the builds of the workspace, one time after the other, and notes where an answer goes back. */
class Reader implements AsyncDisposable {
  readonly faults: string[] = [];
  readonly refusals: string[] = [];
  /** The position of the last answer, and the subjects in it. */
  last: Offset = logStart;
  subjects: ReadonlySet<string> = new Set();
  answers = 0;
  readonly #stack: SeededStack["stack"];
  readonly #over = new AbortController();
  #seen: readonly string[] = [];
  #running: Promise<void> | undefined;

  constructor({ stack }: SeededStack) {
    this.#stack = stack;
  }

  async ask(): Promise<void> {
    const { status, headers, body } = await this.#stack.httpCall("GET", "/api/v1/operations?kind=build&limit=1000");
    if (status !== 200) {
      this.refusals.push(body);
      return;
    }
    const position = String(headers["tapedeck-position"]);
    const { offset = logStart } = parsePosition(position) ?? {};
    const { items } = JSON.parse(body) as { items: { id: string; subject: string }[] };
    const ids = items.map(({ id }) => id);
    if (offset < this.last) this.faults.push(`${position} came after ${this.last}`);
    const lost = this.#seen.filter((id) => !ids.includes(id));
    if (lost.length > 0) this.faults.push(`at ${position} ${lost} is not there any more`);
    this.last = offset;
    this.subjects = new Set(items.map(({ subject }) => subject));
    this.#seen = ids;
    this.answers += 1;
  }

  keepAsking(): void {
    const run = async () => {
      while (!this.#over.signal.aborted) {
        await this.ask();
        await delay(5, this.#over.signal);
      }
    };
    this.#running = run();
  }

  /** Resolves when so many further requests are answered or refused. */
  async goesOn(requests: number): Promise<void> {
    const done = () => this.answers + this.refusals.length;
    const goal = done() + requests;
    await until(() => done() >= goal, { message: `${requests} further answers` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#running;
  }
}

/**
 * Somebody has read the workspace from the first query. Then the second one has taken it over, its tables are held, and the
 * first query's tables have got builds that the second one's lack.
 */
async function harness() {
  await using cleanup = new AsyncDisposableStack();
  const on = cleanup.use(await startSeededStack(env));
  const script = scenario(shop);
  const session = script.session("01S1");
  const builds = (count: number) => {
    const before = script.events.length;
    for (let left = count; left > 0; left -= 1) {
      session.build("web", "started");
      session.build("web", "succeeded");
    }
    return script.events.slice(before);
  };
  session.started();
  session.configured();
  session.loopStarted();
  await on.seed([...script.events, ...builds(3)]);
  const reader = cleanup.use(new Reader(on));
  await reader.ask();

  const database = cleanup.use(await freshDatabase(migrated));
  const { nats, query: first } = on.stack.parts;
  const advertise = `127.0.0.1:${await ownPort()}`;
  const settings = {
    ...env,
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_POSTGRES_URL: database.url,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_QUERY_ADVERTISE: advertise,
    TAPEDECK_QUERY_GRPC_PORT: advertise.split(":")[1] ?? "",
    TAPEDECK_QUERY_HEALTH_PORT: "0",
    TAPEDECK_QUERY_WORKSPACES: "acme",
  };
  const second = cleanup.use(await startQuery(readConfig({ env: settings }), silentLogger));
  const connection = cleanup.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const map = new QueryMapStore(connection);
  const isTaken = async () => queriesOf(await map.read(), "acme").at === advertise;
  await until(isTaken, { message: "the second query to take the workspace over" });
  const hold = cleanup.use(await holdTables(database.url));
  /** Writes builds, and resolves when that query has them. */
  const write = async (count: number, query: Query) => {
    const end = endOf((await on.write(builds(count))).at(-1) ?? 0);
    await until(() => query.positionOf("acme") >= end, { message: "the builds to be in the tables" });
    return end;
  };
  const end = await write(2, first);
  await reader.ask();
  expect(second.positionOf("acme")).toBeLessThan(end);
  expect(reader.last).toBeGreaterThanOrEqual(end);
  expect((await map.read()).get("acme")).toEqual({ at: advertise, also: [defaultQuery], offered: false });
  const owned = cleanup.move();
  return { reader, first, second, hold, write, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("the first query answers until the second one's tables have all that was answered", async () => {
  await using on = await harness();
  const { reader, first, second, hold, write } = on;
  // For longer than a request waits for the second query.
  reader.keepAsking();
  const end = await write(2, first);
  await until(() => reader.last >= end, { message: "an answer with the newest builds" });
  await reader.goesOn(20);
  expect(second.positionOf("acme")).toBeLessThan(end);
  await hold.release();
  await until(() => second.positionOf("acme") >= end, { message: "the second query to catch up" });
  await hold.rename("web of the second query");
  await until(() => reader.subjects.has("web of the second query"), { message: "the second query to answer" });
  await reader.goesOn(20);
  expect([...reader.subjects]).toEqual(["web of the second query"]);
  expect(reader.faults).toEqual([]);
  expect(reader.refusals).toEqual([]);
});

it("the second query answers when the first one can't, although its tables are behind", async () => {
  await using on = await harness();
  const { reader, first, second } = on;
  await first[Symbol.asyncDispose]();
  reader.keepAsking();
  await until(() => reader.last === second.positionOf("acme"), { message: "the second query to answer" });
});
