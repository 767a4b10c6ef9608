import { scenario, write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import pg from "pg";
import { expect, it } from "vitest";
import { type Processes, startProcesses } from "../processes.ts";

/** A name that is in nothing else. */
const developer = "alizarin";
const [hers, bobs] = ["01KE3M9Z6Q4W8T2V5X7Y9A1B40", "01KE3M9Z6Q4W8T2V5X7Y9A1B41"] as const;
const waitsForTables = "query, whose tables still have the name";

/** The developer's session, and then bob's. */
function recorded() {
  return [
    [developer, hers],
    ["bob", bobs],
  ].flatMap(([name = "", id = ""]) => {
    const source = sourceName({ workspace: "default", developer: name, project: "shop", upstream: "skaffold" });
    const script = scenario(source);
    script.add({
      kind: "source.added",
      detail: { $case: "source_detail", value: { developer_name: name, project_name: "shop" } },
    });
    const session = script.session(id);
    session.started();
    session.build("web", "started");
    session.build("web", "failed");
    session.ended();
    return script.events;
  });
}

/** A Tapedeck with both sessions in its tables, whose next rebuild stops before bob's until `goOn`. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await startProcesses([], { TAPEDECK_QUERY_BATCH_EVENTS: "1" }));
  const nats = stack.adopt(await connect({ servers: on.nats }), (one) => one.close());
  const log = stack.use(await openLog(nats, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  await write(log, recorded());
  await until(async () => (await sessions(on)).includes(bobs), { message: "the tables to have bob's session" });
  const database = new pg.Client({ connectionString: on.database });
  await database.connect();
  stack.defer(() => database.end());
  await database.query(`
    select pg_advisory_lock(1);
    create function public.wait() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
    create function public.stop_rebuild() returns event_trigger language plpgsql as $$
      begin
        if exists (select from pg_event_trigger_ddl_commands() where object_identity = 'tapedeck_rebuild.sessions') then
          create trigger stop before insert on tapedeck_rebuild.sessions
            for each row when (new.session = '${bobs}') execute function public.wait();
        end if;
      end $$;
    create event trigger stop_rebuild on ddl_command_end when tag in ('CREATE TABLE') execute function public.stop_rebuild()`);
  const isStopped = async () => {
    const waits = async () =>
      (await database.query("select from pg_locks where locktype = 'advisory' and not granted")).rows.length > 0;
    await until(waits, { message: "the rebuild to stop in the middle" });
    expect(await rowsWith(database, "tapedeck_rebuild")).toContain("tapedeck_rebuild.sources");
  };
  const owned = stack.move();
  return {
    on,
    database,
    isStopped,
    /** Resolves with its answer when the rebuild has stopped. */
    async stoppedRebuild(signal?: AbortSignal) {
      const answer = rebuild(on, signal);
      await isStopped();
      return { answer };
    },
    goOn: async () =>
      void (await database.query("select pg_advisory_unlock(1); drop event trigger if exists stop_rebuild")),
    /** Nothing of the developer is in the log, nor in any table. */
    async isGone() {
      expect(await rowsWith(database, "tapedeck")).toEqual([]);
      expect(await sessions(on)).toContain(bobs);
      const { lastOffset } = await log.reader.bounds();
      const from = { afterOffset: logStart, subjects: [] };
      const sources = new Set<string>();
      for await (const { event } of log.reader.history(from, lastOffset, new AbortController().signal))
        sources.add(event.source);
      expect([...sources]).toEqual(["default/bob/shop/skaffold"]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function call({ http }: Processes, method: string, path: string, signal?: AbortSignal): Promise<string> {
  return (await fetch(`http://${http}/api/v1/${path}`, { method, ...(signal && { signal }) })).text();
}

const sessions = (on: Processes) => call(on, "GET", "sessions");
/** Resolves with the last line, or the error, when it is over. */
const rebuild = (on: Processes, signal?: AbortSignal) =>
  call(on, "POST", "rebuild", signal).then(lastLine, (error: Error) => error.name);
const lastLine = (lines: string) => lines.trim().split("\n").at(-1);

/** The tables of these schemas that have the developer's name. */
async function rowsWith(database: pg.Client, schema: string): Promise<readonly string[]> {
  const { rows } = await database.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname like $1 || '%'",
    [schema],
  );
  const found: string[] = [];
  for (const { name } of rows)
    if ((await database.query(`select from ${name} t where t::text like '%${developer}%'`)).rows.length > 0)
      found.push(name);
  return found;
}

/** Begins or continues the erasure, and resolves when it is over, or waits for the tables. */
async function erased(on: Processes): Promise<"done" | "waits"> {
  const over = new AbortController();
  const response = await fetch(`http://${on.http}/api/v1/developers/${developer}`, {
    method: "DELETE",
    signal: over.signal,
  });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('"state":"done"')) return "done";
    if (!text.includes(waitsForTables)) continue;
    over.abort();
    return "waits";
  }
  throw new Error(text);
}

const isErased = (on: Processes) => until(async () => (await erased(on)) === "done", { message: "the erasure to end" });

it("a developer who is erased during a rebuild is not in the new tables", async () => {
  await using at = await harness();
  const { answer } = await at.stoppedRebuild();
  expect(await erased(at.on)).toBe("waits");
  await at.goOn();
  expect(await answer).toBe('{"type":"complete"}');
  await isErased(at.on);
  await at.isGone();
});

it("an erasure and the rebuild of a new version both end, and the new tables lack the developer", async () => {
  await using at = await harness();
  const { query } = at.on.services;
  await query.kill();
  await at.database.query("update tapedeck_internal.checkpoint set projection = 'operations.0'");
  const started = query.start();
  await at.isStopped();
  expect(await erased(at.on)).toBe("waits");
  await at.goOn();
  await started;
  await isErased(at.on);
  await at.isGone();
  const { rows } = await at.database.query(
    "select from tapedeck_internal.checkpoint where projection = 'operations.0'",
  );
  expect(rows).toEqual([]);
});

it.each(["before the erasure", "while the erasure waits"])(
  "a developer is erased although a rebuild was killed %s, and no later one brings the name back",
  async (when) => {
    await using at = await harness();
    await at.stoppedRebuild();
    const { query } = at.on.services;
    if (when !== "before the erasure") expect(await erased(at.on)).toBe("waits");
    await query.kill();
    await at.goOn();
    await query.start();
    await isErased(at.on);
    await at.isGone();
    expect(await rebuild(at.on)).toBe('{"type":"complete"}');
    await at.isGone();
  },
);
