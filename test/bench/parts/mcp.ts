import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";

/** What an assistant is promised, in ms. */
const bound = 300;

/** Calls each tool of /mcp on one session with as many events as the given size. */
export async function mcp(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  const seeded = await seed(bench, stack.log, bench.part, bench.options.size);
  await tablesCaughtUp(stack);
  const times = cleanup.use(await RequestTimes.start(bench, stack));
  const source = seeded.source.split("/").slice(1).join("/");
  const at = seeded.positionAt(0.7);
  const calls: Readonly<Record<string, readonly [tool: string, args: object]>> = {
    list_sources: ["list_sources", {}],
    "list_sources at a position": ["list_sources", { at }],
    get_state: ["get_state", { source }],
    "get_state at a position": ["get_state", { source, at }],
    why_failed: ["why_failed", { source }],
    "why_failed at a position": ["why_failed", { source, at }],
    compare: ["compare", { left: source, right: `${source}@${at}` }],
    "wait_for_loop, which is over": ["wait_for_loop", { source, after: at }],
    search_events: ["search_events", {}],
    "search_events of failures before a position": ["search_events", { kinds: ["*.failed"], before: at }],
    "search_events by text": ["search_events", { text: "exit status" }],
    read_output: ["read_output", { source }],
    "read_output before a position": ["read_output", { source, before: at }],
    "stats of builds": ["stats", { about: "builds", group: ["artifact"] }],
    "stats of loops": ["stats", { about: "loops", group: ["project", "day"] }],
    "stats of failures": ["stats", { about: "failures", group: ["reason"] }],
  };
  const count = bench.scaled(30, 3);
  for (const [name, [tool, args]] of Object.entries(calls))
    await times.measure({ name: `/mcp, ${name}`, ask: times.mcp(tool, args), count, atMost: bound });
  times.report("mcp");
}
