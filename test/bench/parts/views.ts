import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { dashboards, fillDashboards } from "../tables/dashboards.ts";

/** The bound for 10 million operations. */
const bound = 1_000;

/**
 * Runs a dashboard's query on each view, over as many operations as the given size. To fill 10 million takes half an
 * hour.
 */
export async function views(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  await seed(bench, stack.log, bench.part, 400);
  await tablesCaughtUp(stack);
  await fillDashboards(stack.database, bench.options.size);
  const times = cleanup.use(await RequestTimes.start(bench, stack));
  for (const [name, statement] of Object.entries(dashboards)) {
    await times.measure({ name, ask: times.sql(statement), count: bench.scaled(10, 3), atMost: bound });
  }
}
