import { Client } from "pg";
import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { fillHistory } from "../tables/history-rows.ts";

const bound = 300;

/** Lists and searches a history of as many loops as the given size, a tenth of which failed with some kilobytes of output. */
export async function search(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  await seed(bench, stack.log, bench.part, 400);
  await tablesCaughtUp(stack);
  await fillHistory(stack.database, bench.options.size);
  const times = cleanup.use(await RequestTimes.start(bench, stack));
  await checkAnswers(times, bench.options.size);
  await addSizes(bench, stack.database);
  const count = bench.scaled(100, 3);
  for (const [name, parameters] of Object.entries(questions)) {
    const ask = times.http([`/api/v1/search?limit=50${parameters}`]);
    await times.measure({ name: `/search, ${name}`, ask, count, atMost: bound });
  }
  times.report("search");
}

const questions: Readonly<Record<string, string>> = {
  "no filter": "",
  "the failed ones": "&outcome=failed",
  "a developer": "&developer=dev-7",
  "a developer of long ago": "&developer=left",
  "a rare artifact": "&artifact=rare",
  "a frequent artifact": "&artifact=image-3",
  "a rare label": "&label=branch%3Dfeature-77",
  "a week": "&from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z",
  "filters that nothing passes": "&artifact=rare&outcome=canceled",
  "a rare text": "&q=needle+of+the+haystack",
  "a text in a hundredth of the failures": "&q=no+such+file+or+directory",
  "a text in all failures": "&q=exit+status",
  "a text in all failures of a developer": "&q=exit+status&developer=dev-7",
  "a text that is nowhere": "&q=Deploymintt",
  "words that are never side by side": "&q=status+directory+warning",
};

type Found = { readonly items: readonly unknown[]; readonly total?: number; readonly totalIsMinimum?: boolean };

/** Checks that the questions mean something. */
async function checkAnswers(times: RequestTimes, size: number): Promise<void> {
  const found = (parameters: string) => times.body<Found>(`/api/v1/search?limit=50${parameters}`);
  const [all, rare, nowhere] = [
    await found(""),
    await found("&q=needle+of+the+haystack"),
    await found("&q=Deploymintt"),
  ];
  const expected = Math.max(1, Math.floor(size / 100_000));
  const isRight = all.items.length === 50 && rare.total === expected && nowhere.total === 0;
  if (!isRight) throw new Error(`${all.items.length}, ${rare.total} and ${nowhere.total} items were found`);
}

/** How large the tables are with their indexes, beside those of the operations of loops alone. */
async function addSizes(bench: Bench, url: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client.query<{ name: string; mib: number }>(`
    select relname as name, pg_total_relation_size(oid)::float8 / 1048576 as mib from pg_class
    where relname in ('operations', 'history', 'failed_outputs', 'history_text', 'failed_outputs_text') and relkind in ('r', 'i')`);
  await client.end();
  const sizes = new Map(rows.map(({ name, mib }) => [name, mib]));
  const calibration = "the table operations";
  for (const name of ["history", "history_text", "failed_outputs", "failed_outputs_text"])
    bench.add(
      { name: `${name} on disk`, unit: "MiB", calibration, targets: [] },
      [sizes.get(name) ?? 0],
      [sizes.get("operations") ?? 0],
    );
}
