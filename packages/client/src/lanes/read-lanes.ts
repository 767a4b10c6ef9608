import type { Client } from "../client.ts";
import type { SourceFilter } from "../filter.ts";
import { isOver, maxLoops, type Now, nowOf } from "./now.ts";
import { stepKinds } from "./step.ts";

/** About how many of each are read at the start. */
const max = { sources: 1_000, loops: 2_000, steps: 2_000, apps: 1_000, ports: 1_000 } as const;
/** The most and the least of a source. The newest show whether it fails, however many sources there are. */
const perSource = { loops: { max: maxLoops, least: 4 }, steps: { max: 100, least: 8 } } as const;
/** Every source adds its newest, those beyond `max.sources` too. At most this many times `max` are kept. */
const maxTimes = 4;
const loopKinds = ["loop", "command"] as const;

/** The most values that a filter takes. */
const maxValues = 100;

/** The sources as of one position, and where to subscribe so that every event after it follows. */
export async function readLanes(
  client: Client,
  filter: SourceFilter,
  signal: AbortSignal,
): Promise<{ readonly now: Now; readonly after: string }> {
  const known = await firstOf(client.sources({ ...filter, pageSize: 1_000, signal }), max.sources);
  const at =
    known
      .map(({ lastPosition }) => lastPosition)
      .toSorted()
      .at(-1) ?? "";
  if (at === "") return { now: new Map(), after: "start" };
  const index = { ...filter, at, pageSize: 1_000, signal };
  // A limit per source, so that a quiet source is not lost behind the others.
  const share = (what: keyof typeof perSource) =>
    Math.max(perSource[what].least, Math.min(perSource[what].max, Math.floor(max[what] / known.length)));
  const [sources, loops, steps, apps] = await Promise.all([
    firstOf(client.sources(index), max.sources),
    firstOf(client.operations({ ...index, kinds: loopKinds, perSource: share("loops") }), maxTimes * max.loops),
    firstOf(client.operations({ ...index, kinds: stepKinds, perSource: share("steps") }), maxTimes * max.steps),
    firstOf(client.operations({ ...index, kinds: ["app"] }), max.apps),
  ]);
  const newest = sources.flatMap(({ currentSession }) => currentSession ?? []);
  const sessions = await inParts(newest, (part) =>
    firstOf(client.sessions({ sessions: part, at, pageSize: 1_000, signal })),
  );
  const running = sessions.flatMap((head) => (isOver(head) ? [] : [head.session]));
  const ports = await portsOf(running, (part) =>
    client.newest({ sessions: part, kinds: ["port.forwarded"], last: max.ports, signal }),
  );
  return { now: nowOf({ sources, sessions, operations: [...loops, ...steps, ...apps], ports }), after: at };
}

/** Asks for many values, as many at once as a filter takes. */
async function inParts<Item>(
  values: readonly string[],
  ask: (part: readonly string[]) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  for (const part of partsOf(values)) found.push(...(await ask(part)));
  return found;
}

/** The newest ports of each session. */
async function portsOf<Port>(
  sessions: readonly string[],
  ask: (part: readonly string[]) => Promise<readonly Port[]>,
): Promise<readonly Port[]> {
  const found: Port[] = [];
  const parts = partsOf(sessions);
  // The parts that are appended below are asked for, too.
  for (const [index, part] of parts.entries()) {
    const ports = await ask(part);
    const isFull = ports.length >= max.ports && part.length > 1;
    // A session that forwards again and again may hide the ports of the others.
    if (isFull && index < maxHalved) parts.push(...halvesOf(part));
    else for (const port of ports) found.push(port);
  }
  return found;
}

/** The most full pages that are read: thousands of ports in each of hundreds of sessions are too much. */
const maxHalved = 50;

function partsOf(values: readonly string[]): (readonly string[])[] {
  const starts = Array.from({ length: Math.ceil(values.length / maxValues) }, (_, part) => part * maxValues);
  return starts.map((start) => values.slice(start, start + maxValues));
}

function halvesOf(values: readonly string[]): readonly (readonly string[])[] {
  const middle = Math.ceil(values.length / 2);
  return [values.slice(0, middle), values.slice(middle)];
}

/** The first items of a list; the rest is not asked for. */
async function firstOf<Item>(items: AsyncIterable<Item>, max = Number.POSITIVE_INFINITY): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    if (found.push(item) >= max) break;
  }
  return found;
}
