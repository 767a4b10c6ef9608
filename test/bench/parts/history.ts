import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";

/** Queries the newest matching events in a log of the given size, from ten sources, and all events of a kind that few have. */
export async function history(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const sources = 10;
  for (let index = 0; index < sources; index++) {
    await seed(bench, stack.log, `history-${index}`, Math.max(60, Math.ceil(bench.options.size / sources)));
  }
  await tablesCaughtUp(stack);
  const times = cleanup.use(await RequestTimes.start(bench, stack));
  await checkAnswers(times);
  const count = bench.scaled(60, 3);
  for (const [name, filter] of Object.entries(filters)) {
    const path = `/api/v1/events?last=50${filter}`;
    const ask = times.http([path]);
    await times.measure({ name: `/events?last=50, ${name}`, ask, count, atMost: 20 });
  }
  for (const [name, filter] of Object.entries(streams)) {
    const path = `/api/v1/stream?after=start&until=now${filter}`;
    const ask = times.http([path]);
    await times.measure({ name: `/stream from the start, ${name}`, ask, count, atMost: 100 });
  }
  times.report("history");
}

/** Both are read to their ends. The first has one event of each source. */
const streams: Readonly<Record<string, string>> = {
  "the rarest kind": "&kind=session.started",
  "a subject that nobody has": "&subject=nobody",
};

/** Checks that the queries are meaningful: the first matches as many events as requested, the last none. */
async function checkAnswers(times: RequestTimes): Promise<void> {
  const found = async (filter = "") => {
    const { items } = await times.body<{ items: readonly unknown[] }>(`/api/v1/events?last=50${filter}`);
    return items.length;
  };
  const [all, some] = [await found(), await found(filters["the oldest source"])];
  if (all !== 50 || some !== 50) throw new Error(`${all} and ${some} events were found, not 50 each`);
}

/** From filters that match much to filters that match nothing. */
const filters: Readonly<Record<string, string>> = {
  "no filter": "",
  "a kind that is frequent": "&kind=log.written",
  "a kind that is rare": "&kind=loop.succeeded",
  "a source's failures": "&developer=history-3&outcome=failed",
  "the oldest source": "&developer=history-0",
  "a subject that nobody has": "&subject=nobody",
};
