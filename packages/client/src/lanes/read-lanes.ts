import type { Client } from "../client.ts";
import type { SourceFilter } from "../filter.ts";
import { type Now, nowOf } from "./now.ts";

/** So many of each are read at the beginning. */
const most = { sources: 1_000, sessions: 500, loops: 1_000, steps: 1_000 } as const;
const stepKinds = ["build", "test", "render", "deploy", "verify", "exec", "check", "sync", "app"] as const;

/** The sources as of one position, and where to subscribe so that every event after it follows. */
export async function readLanes(
  client: Client,
  filter: SourceFilter,
  signal: AbortSignal,
): Promise<{ readonly now: Now; readonly after: string }> {
  const known = await firstOf(client.sources({ ...filter, signal }), most.sources);
  const at =
    known
      .map(({ lastPosition }) => lastPosition)
      .toSorted()
      .at(-1) ?? "";
  if (at === "") return { now: new Map(), after: "start" };
  const asked = { ...filter, at, signal };
  const [sources, sessions, loops, steps] = await Promise.all([
    firstOf(client.sources(asked), most.sources),
    firstOf(client.sessions(asked), most.sessions),
    firstOf(client.operations({ ...asked, kinds: ["loop", "command"] }), most.loops),
    firstOf(client.operations({ ...asked, kinds: stepKinds }), most.steps),
  ]);
  return { now: nowOf({ sources, sessions, operations: [...loops, ...steps] }), after: at };
}

/** The first items of a list; the rest is not asked for. */
async function firstOf<Item>(items: AsyncIterable<Item>, most: number): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    if (found.push(item) >= most) break;
  }
  return found;
}
