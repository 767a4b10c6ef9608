import type { Operation, Session, Source, TapedeckEvent } from "../index.ts";
import { millis } from "./format.ts";
import { foldRounds, isOutsideLoops, roundOf, roundsOf } from "./rounds.ts";
import {
  changeOf,
  endedAtOnce,
  endedBy,
  foldSteps,
  type Loop,
  lengthOf,
  loopOfOperation,
  type Step,
  stepOfEvent,
  stepOfOperation,
  timeOf,
} from "./step.ts";

/** A source's row, folded from lists at a position and the events after it. */
export type Lane = {
  /** "workspace/developer/project/upstream" */
  readonly source: string;
  readonly name: string;
  readonly upstream: string;
  readonly status: string;
  readonly lostSince: number | undefined;
  readonly session: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly lastEventAt: number | undefined;
  readonly gaps: number;
  /** Oldest first, at most `keptLoops`. */
  readonly loops: readonly Loop[];
  /** A rkt host has these, by "pod/app". */
  readonly apps: ReadonlyMap<string, App>;
  readonly ports: readonly Port[];
};

export type App = { readonly isRunning: boolean; readonly exitCode: number | undefined; readonly at: number };
export type Port = { readonly local: number; readonly resource: string };
export type Now = ReadonlyMap<string, Lane>;

export const maxLoops = 20;

/** The kinds of events that change what is shown. */
export const nowKinds = [
  ...["loop.*", "init.*", "build.*", "test.*", "render.*", "deploy.*", "verify.*", "exec.*", "check.*", "sync.*"],
  ...["session.*", "source.*", "upstream.*", "port.*", "app.*", "pod.*", "command.*"],
] as const;

export type NowLists = {
  readonly sources: readonly Source[];
  readonly sessions: readonly Session[];
  readonly operations: readonly Operation[];
  /** The newest of each session that runs, in order. */
  readonly ports: readonly TapedeckEvent<"port.forwarded">[];
};

export function nowOf({ sources, sessions, operations, ports }: NowLists): Now {
  const heads = new Map(sessions.map((head) => [head.session, head]));
  const operationsBy = groupedBy(operations, ({ source }) => source);
  const portsBy = groupedBy(ports, (port) => port.session);
  const rows = sources.map((source): [string, Lane] => {
    const own = operationsBy.get(source.source) ?? [];
    const newest = heads.get(source.currentSession ?? "");
    // A source's newest session may be over.
    const session = newest !== undefined && isOver(newest) ? undefined : (source.currentSession ?? undefined);
    const forwarded = portsBy.get(session) ?? [];
    const row = {
      ...emptyRow(source.source),
      name: `${source.developer}/${source.project}`,
      status: source.status,
      lostSince: source.status === "lost" ? (millis(source.notHeardSince) ?? millis(source.lastEventAt)) : undefined,
      session,
      labels: newestLabels(own, source.currentSession) ?? newest?.labels ?? {},
      lastEventAt: millis(source.lastEventAt),
      gaps: source.gaps,
      loops: loopsOf(own),
      apps: appsOf(own, source.currentSession),
      ports: forwarded.reduce<readonly Port[]>(withPort, []),
    };
    return [source.source, row];
  });
  return new Map(rows);
}

/** Also when its end was not seen, which then has a reason and no time. */
export function isOver({ endedAt, endReason }: Pick<Session, "endedAt" | "endReason">): boolean {
  return endedAt !== null || endReason !== null;
}

function groupedBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, readonly Item[]> {
  const grouped = new Map<Key, Item[]>();
  for (const item of items) {
    const own = grouped.get(keyOf(item));
    if (own === undefined) grouped.set(keyOf(item), [item]);
    else own.push(item);
  }
  return grouped;
}

/** The labels of the session's last loop. */
function newestLabels(operations: readonly Operation[], session: string | null): Lane["labels"] | undefined {
  const loops = operations.filter((one) => one.kind === "loop" && one.session === session);
  return loops.toSorted((a, b) => (a.startPosition < b.startPosition ? 1 : -1))[0]?.labels;
}

function emptyRow(source: string): Lane {
  const [, developer = "", project = "", upstream = ""] = source.split("/");
  return {
    source,
    name: `${developer}/${project}`,
    upstream,
    status: "waiting",
    labels: {},
    gaps: 0,
    lostSince: undefined,
    session: undefined,
    lastEventAt: undefined,
    loops: [],
    apps: new Map(),
    ports: [],
  };
}

const isLoop = (kind: string): boolean => kind === "loop" || kind === "command";

/** Loops with their steps, oldest first, of operations in any order. */
export function loopsOf(operations: readonly Operation[], max = maxLoops): readonly Loop[] {
  const order = operations.toSorted((a, b) => (a.startPosition < b.startPosition ? -1 : 1));
  const loops = order
    .filter(({ kind }) => isLoop(kind))
    .slice(-max)
    .map((operation): Loop => {
      const isOwn = (one: Operation) =>
        !isLoop(one.kind) &&
        operation.kind === "loop" &&
        one.session === operation.session &&
        one.runner === operation.runner &&
        one.loop === operation.loop;
      return { ...loopOfOperation(operation), steps: order.filter(isOwn).map(stepOfOperation) };
    });
  const rounds = roundsOf(order).slice(-max);
  return [...loops, ...rounds].toSorted((a, b) => (a.position < b.position ? -1 : 1)).slice(-max);
}

function appsOf(operations: readonly Operation[], session: string | null): ReadonlyMap<string, App> {
  const own = operations.filter((one) => one.kind === "app" && one.session === session);
  const order = own.toSorted((a, b) => (a.startPosition < b.startPosition ? -1 : 1));
  return new Map(
    order.map(({ subject, endedAt, startedAt, exitCode }) => [
      subject,
      { isRunning: endedAt === null, exitCode: exitCode ?? undefined, at: millis(endedAt ?? startedAt) ?? 0 },
    ]),
  );
}

/** The rows after an event. */
export function foldNow(now: Now, event: TapedeckEvent): Now {
  const known = now.get(event.source) ?? emptyRow(event.source);
  const row = foldRow({ ...known, lastEventAt: Math.max(known.lastEventAt ?? 0, timeOf(event)) }, event);
  return new Map(now).set(event.source, row);
}

function foldRow(row: Lane, event: TapedeckEvent): Lane {
  switch (event.kind) {
    case "session.started":
      return {
        ...row,
        ...(event.session !== undefined && { session: event.session }),
        status: "recording",
        lostSince: undefined,
        labels: event.detail?.labels ?? {},
        apps: new Map(),
        ports: [],
      };
    case "session.labelled":
      return event.session === row.session ? { ...row, labels: withLabels(row.labels, event.detail?.labels) } : row;
    case "session.ended":
    case "session.lost":
      return { ...row, loops: withoutOpen(row.loops, event), session: undefined, ports: [] };
    case "session.gap":
      return { ...row, gaps: row.gaps + 1 };
    case "upstream.connected":
      return { ...row, status: "recording", lostSince: undefined };
    case "upstream.restored":
      // A session that had been given up continues.
      return { ...row, status: "recording", lostSince: undefined, session: event.session ?? row.session };
    case "upstream.lost":
      return event.detail?.unheard === true
        ? { ...row, status: "lost", lostSince: timeOf(event) }
        : { ...row, status: row.status === "lost" ? "lost" : "waiting" };
    case "port.forwarded":
      return { ...row, ports: withPort(row.ports, event) };
    case "app.started":
    case "app.exited":
      return withApp(row, event);
    default:
      return { ...row, loops: foldLoops(row.loops, event) };
  }
}

function withLabels(labels: Lane["labels"], changed: Lane["labels"] = {}): Lane["labels"] {
  return Object.fromEntries(Object.entries({ ...labels, ...changed }).filter(([, value]) => value !== ""));
}

/** The loops after the end of their session: no event will report how the running ones ended. */
export function withoutOpen(loops: readonly Loop[], event: TapedeckEvent): readonly Loop[] {
  const isOpen = (one: Step) => one.endedAt === undefined;
  const ended = (one: Step) => ({
    endedAt: Math.max(timeOf(event), one.startedAt),
    isUntimed: true,
    outcome: "unknown" as const,
  });
  return loops.map((loop) => {
    if (!isOpen(loop) || loop.session !== event.session) return loop;
    const steps = loop.steps.map((step) => (isOpen(step) ? { ...step, ...ended(step) } : step));
    return loop.kind === "round" ? roundOf(steps, loop) : { ...loop, ...ended(loop), steps };
  });
}

function withPort(ports: readonly Port[], { detail }: TapedeckEvent<"port.forwarded">): readonly Port[] {
  const { localPort, resourceName, portName } = detail ?? {};
  if (localPort === undefined) return ports;
  const port = { local: localPort, resource: resourceName || portName || "" };
  return [...ports.filter(({ local }) => local !== localPort), port];
}

function withApp(row: Lane, event: TapedeckEvent<"app.started" | "app.exited">): Lane {
  if (event.subject === undefined) return row;
  const app = { isRunning: event.kind === "app.started", exitCode: event.detail?.exitCode, at: timeOf(event) };
  return { ...row, apps: new Map(row.apps).set(event.subject, app) };
}

export function foldLoops(loops: readonly Loop[], event: TapedeckEvent, max = maxLoops): readonly Loop[] {
  const { operation, session = "" } = event;
  if (operation === undefined) return loops;
  if (isLoop(operation.kind)) return foldLoop(loops, event, max);
  if (isOutsideLoops(operation)) return foldRounds(loops, event).slice(-max);
  const at = loops.findLastIndex(
    (one) => one.session === session && one.runner === operation.runner && one.loop === operation.loop,
  );
  const loop = loops[at];
  if (loop === undefined || loop.kind !== "loop") return loops;
  const steps = foldSteps(loop.steps, event);
  return steps === loop.steps ? loops : loops.with(at, { ...loop, steps });
}

function foldLoop(loops: readonly Loop[], event: TapedeckEvent, max: number): readonly Loop[] {
  const change = changeOf(event);
  if (change === undefined) return loops;
  const { runner = 0, loop = 0, instance = "" } = event.operation ?? {};
  const newLoop: Loop = { ...stepOfEvent(event), session: event.session ?? "", runner, loop, steps: [] };
  if (change === "start") return [...loops, newLoop].slice(-max);
  const at = loops.findLastIndex(
    (one) => one.session === newLoop.session && one.runner === runner && one.loop === loop && one.instance === instance,
  );
  const known = loops[at];
  return known === undefined
    ? [...loops, endedAtOnce(newLoop, event)].slice(-max)
    : loops.with(at, endedBy(known, event));
}

export const groups = ["failing", "running", "idle", "lost"] as const;
export type Group = (typeof groups)[number];

export function currentLoop({ loops }: Pick<Lane, "loops">): Loop | undefined {
  return loops.at(-1);
}

export function lastEnded({ loops }: Pick<Lane, "loops">): Loop | undefined {
  return loops.findLast(({ endedAt }) => endedAt !== undefined);
}

/** For so long a failure is shown as one after its process has ended: about a working day. */
const failsAfterEndMs = 12 * 3_600_000;

/**
 * A source fails from its first bad loop to its next good one, also while it tries again. When its process ends, what
 * failed is still broken: a command that ends with its failure, such as `vagrant up`, is the usual case.
 */
export function groupOf(row: Lane, now: number): Group {
  if (row.status === "lost") return "lost";
  const judged = row.loops.findLast(({ outcome }) => outcome === "succeeded" || outcome === "failed");
  const isOld = row.session === undefined && now - (judged?.endedAt ?? 0) >= failsAfterEndMs;
  if (judged?.outcome === "failed" && !isOld) return "failing";
  return currentLoop(row) !== undefined && currentLoop(row)?.endedAt === undefined ? "running" : "idle";
}

/** The failed loops since the last good one, oldest first. */
export function failedSince({ loops }: Pick<Lane, "loops">): readonly Loop[] {
  const good = loops.findLastIndex(({ outcome }) => outcome === "succeeded");
  return loops.slice(good + 1).filter(({ outcome }) => outcome === "failed");
}

/** Half of the last good loops took no longer than this; undefined: there was none. Commands are compared with their like. */
export function usualMs({ loops }: Pick<Lane, "loops">, subject = ""): number | undefined {
  const lengths = loops
    .filter((loop) => loop.outcome === "succeeded" && loop.subject === subject)
    .flatMap((loop) => lengthOf(loop, loop.startedAt) ?? [])
    .toSorted((a, b) => a - b);
  return lengths[Math.floor((lengths.length - 1) / 2)];
}

/** A row stays in its group for a while, and as long as the pointer is on it: nothing jumps under the reader's eyes. */
export const settleMs = 2_000;

export type Placement = { readonly group: Group; readonly target: Group; readonly since: number };

export function placed(
  before: ReadonlyMap<string, Placement>,
  rows: Now,
  { now, held }: { readonly now: number; readonly held: string | undefined },
): ReadonlyMap<string, Placement> {
  return new Map(
    [...rows].map(([source, row]) => {
      const target = groupOf(row, now);
      const old = before.get(source);
      if (old === undefined) return [source, { group: target, target, since: now }];
      const since = old.target === target ? old.since : now;
      const mayMove = source !== held && now - since >= settleMs;
      return [source, { group: mayMove ? target : old.group, target, since }];
    }),
  );
}
