import type { Client } from "../client.ts";
import type { SourceFilter } from "../filter.ts";
import { isOver, keptLoops, type Now, nowOf } from "./now.ts";

/** About so many of each are read at the beginning. */
const most = { sources: 1_000, loops: 2_000, steps: 2_000, apps: 1_000, ports: 1_000 } as const;
/** The most and the least of a source. The newest show whether it fails, however many sources there are. */
const perSource = { loops: { most: keptLoops, least: 4 }, steps: { most: 100, least: 8 } } as const;
const loopKinds = ["loop", "command"] as const;
const stepKinds = ["build", "test", "render", "deploy", "verify", "exec", "check", "sync"] as const;

/** The most values that a filter takes. */
const mostValues = 100;

/** The sources as of one position, and where to subscribe so that every event after it follows. */
export async function readLanes(
  client: Client,
  filter: SourceFilter,
  signal: AbortSignal,
): Promise<{ readonly now: Now; readonly after: string }> {
  const known = await firstOf(client.sources({ ...filter, pageSize: 1_000, signal }), most.sources);
  const at =
    known
      .map(({ lastPosition }) => lastPosition)
      .toSorted()
      .at(-1) ?? "";
  if (at === "") return { now: new Map(), after: "start" };
  const asked = { ...filter, at, pageSize: 1_000, signal };
  // So many of each source, so that a quiet one is not lost behind the others.
  const share = (what: keyof typeof perSource) =>
    Math.max(perSource[what].least, Math.min(perSource[what].most, Math.floor(most[what] / known.length)));
  const [sources, loops, steps, apps] = await Promise.all([
    firstOf(client.sources(asked), most.sources),
    firstOf(client.operations({ ...asked, kinds: loopKinds, perSource: share("loops") })),
    firstOf(client.operations({ ...asked, kinds: stepKinds, perSource: share("steps") })),
    firstOf(client.operations({ ...asked, kinds: ["app"] }), most.apps),
  ]);
  const newest = sources.flatMap(({ currentSession }) => currentSession ?? []);
  const sessions = await inParts(newest, (part) =>
    firstOf(client.sessions({ sessions: part, at, pageSize: 1_000, signal })),
  );
  const running = sessions.flatMap((head) => (isOver(head) ? [] : [head.session]));
  const ports = await inParts(running, (part) =>
    client.newest({ sessions: part, kinds: ["port.forwarded"], last: most.ports, signal }),
  );
  return { now: nowOf({ sources, sessions, operations: [...loops, ...steps, ...apps], ports }), after: at };
}

/** Asks for many values, as many at once as a filter takes. */
async function inParts<Item>(
  values: readonly string[],
  ask: (part: readonly string[]) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  for (let at = 0; at < values.length; at += mostValues) found.push(...(await ask(values.slice(at, at + mostValues))));
  return found;
}

/** The first items of a list; the rest is not asked for. */
async function firstOf<Item>(items: AsyncIterable<Item>, most = Number.POSITIVE_INFINITY): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    if (found.push(item) >= most) break;
  }
  return found;
}
