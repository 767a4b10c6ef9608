import { explain } from "@tapedeck/explain";
import { Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Cause, Operation, Session } from "@tapedeck/proto/tapedeck/v1/lists";
import type { EventJson } from "@tapedeck/shared/events/json";
import { textKinds } from "@tapedeck/shared/events/kinds";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import { ownValue } from "@tapedeck/shared/own-value";
import { sourceParts } from "@tapedeck/shared/source";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { CallContext } from "../../../call-context.ts";
import type { QueryClient } from "../../../query-client.ts";
import { nameOf } from "../../resolve-source.ts";
import { type LateOnV2, lateOnV2 } from "../../skaffold/late-on-v2.ts";
import type { EventsPage, EventsPageRequest } from "../events-page.ts";
import { type LoadedState, type StateItem, stateJson } from "../state.ts";
import { outputAround } from "./output-around.ts";
import { firstFailed, type Side, type SideContext, stepKey } from "./side.ts";
import type {
  Checkout,
  Failure,
  FileChanges,
  Found,
  FoundByName,
  OutputLine,
  SideSummary,
  SummaryStep,
} from "./side-summary.ts";
import { stateSummary } from "./state-summary.ts";

export type SummaryDeps = {
  readonly query: QueryClient;
  readonly readState: (context: CallContext) => Promise<LoadedState>;
  readonly events: (request: EventsPageRequest) => Promise<EventsPage>;
};

/** How many are read of each, so that a comparison takes the same time for a loop of any length. */
const max = { steps: 500, events: 300, history: 500, lines: 300, checkouts: 100 } as const;

/** Summarizes a side. `name`: its name for people, beside the other one. */
export async function readSummary(
  deps: SummaryDeps,
  context: SummaryContext,
  side: Side,
  name: string,
): Promise<SideSummary> {
  const { session, unit, position } = side;
  const { upstream } = sourceParts(nameOf(session));
  const reading: Reading = { deps, context, side, unread: new Set() };
  const late = readLate(reading);
  const [steps, history, events, configuredAt, checkout, { json, manifests }] = await Promise.all([
    readSteps(reading),
    readHistory(reading),
    late.then((known) => readEvents(reading, known)),
    readConfigured(reading),
    readCheckout(reading),
    late.then((known) => readState(reading, known)),
  ]);
  const known = stateSummary(upstream, json, position, configuredAt, manifests);
  const own = steps.length > 0 ? steps : unit === undefined ? [] : [unit];
  const started = (value: string): Found => ({ value, position: session.start_position });
  const failure = await readFailure(reading, own, events);
  const { command: label = started(""), ...labels } = labelsOf(side);
  return {
    name,
    session: session.session,
    runner: unit?.runner ?? 0,
    loop: unit?.loop ?? 0,
    outcome: unit === undefined ? sessionOutcome(session, own, failure) : outcomeOf(unit),
    position,
    version: started(session.upstream_version),
    labels: new Map(Object.entries(labels)),
    command: commandOf(side, events) ?? {
      ...label,
      value: label.value.replace(/^\S*(?:skaffold|vagrant)\S*\s+/, ""),
    },
    ...known,
    resources: withTexts(known.resources, events),
    steps: own.map((step) => summaryStep(step, history)),
    failure,
    gaps: session.gaps,
    checkout,
    unread: [...reading.unread],
  };
}

/** Vagrant reports a command's arguments; the label of `tapedeck run` has its name alone. */
function commandOf({ unit }: Side, events: readonly EventJson[]): Found | undefined {
  if (unit?.kind !== "command") return undefined;
  const args = events.find(({ kind, subject }) => kind === "command.finished" && subject === unit.instance)?.detail
    ?.args;
  if (!Array.isArray(args)) return undefined;
  return { value: [unit.subject, ...args.map(String)].join(" "), position: unit.start_position };
}

/** What v2 of Skaffold reported of the loop after v1's end of it; undefined where there is nothing of the kind. */
async function readLate({ deps, context, side: { session, unit } }: Reading): Promise<LateOnV2 | undefined> {
  if (unit?.kind !== "loop" || unit.end_position === "") return undefined;
  const { runner, loop, end_position: end } = unit;
  const events = (page: EventsPageRequest) => deps.events({ ...page, until: context.at });
  return lateOnV2(events, { session: session.session, runner, loop, end }, context);
}

type ReadState = { readonly json: object; readonly manifests: ReturnType<typeof podManifests> };

/** The state at the side's end: that of each of Skaffold's APIs as of the end on its own stream. */
async function readState({ deps, context, side }: Reading, late: LateOnV2 | undefined): Promise<ReadState> {
  const { source, session } = side.session;
  const stateAt = async (at: string): Promise<ReadState> => {
    const state = await deps.readState({ ...context, source, session, at });
    try {
      return { json: stateJson(state.upstream, state.rows), manifests: podManifests(state.rows) };
    } finally {
      state.done();
    }
  };
  const known = await stateAt(side.position);
  if (late === undefined || !late.changesState) return known;
  const { json } = await stateAt(late.position);
  return { ...known, json: { ...known.json, ...("v2" in json && { v2: json.v2 }) } };
}

/** rkt's manifests by the id of their pod. Only a state's rows have them. */
function podManifests(rows: readonly StateItem[]): ReadonlyMap<string, unknown> {
  return new Map(
    rows.flatMap(({ collection, key, bytes }) => {
      if (collection !== "rkt.pods") return [];
      try {
        return [[key, JSON.parse(Pod.decode(bytes).manifest.toString()) as unknown] as const];
      } catch {
        return [];
      }
    }),
  );
}

/** The labels of the loop when it began, or else of the session. */
function labelsOf({ session, unit }: Side): Record<string, Found> {
  const labels = unit?.kind === "loop" ? unit.labels : session.labels;
  const changed = unit?.labels_position || session.start_position;
  return Object.fromEntries(
    Object.entries(labels).map(([label, value]) => {
      const isOwn = value === ownValue(session.labels, label);
      return [label, { value, position: isOwn ? session.start_position : changed }];
    }),
  );
}

/** `context.at`: nothing later is read, though output and steps may be recorded after the end of their loop. */
type Reading = {
  readonly deps: SummaryDeps;
  readonly context: SummaryContext;
  readonly side: Side;
  /** What is not read, because there is too much. */
  readonly unread: Set<string>;
};
type SummaryContext = CallContext & SideContext;

function outcomeOf(operation: Operation | undefined): SideSummary["outcome"] {
  return (operation?.outcome || null) as SideSummary["outcome"];
}

/**
 * The outcome of a session that is compared as a whole: `skaffold build`, `verify` and `exec` have no loops. Null while it
 * runs; "unknown" if neither its steps nor its exit code show how it ended.
 */
function sessionOutcome(
  { ended, exit_code }: Session,
  steps: readonly Operation[],
  failure: Failure | undefined,
): SideSummary["outcome"] {
  if (!ended) return null;
  if (failure !== undefined) return "failed";
  if (exit_code !== undefined) return exit_code === 0 ? "succeeded" : "failed";
  return steps.length > 0 && steps.every(({ outcome }) => outcome === "succeeded") ? "succeeded" : "unknown";
}

/** The steps of the loop; of a session without loops, the newest of each. */
async function readSteps({
  deps,
  context: { workspace, at },
  side: { session, unit, position },
  unread,
}: Reading): Promise<readonly Operation[]> {
  if (unit !== undefined && unit.kind !== "loop") return [unit];
  const ofLoop = unit === undefined ? { at: position } : { runner: unit.runner, loop: unit.loop, at };
  const { items, next_page } = await deps.query.listOperations({
    workspace,
    sessions: [session.session],
    ...ofLoop,
    limit: max.steps,
  });
  if (next_page !== "") unread.add(`Only its newest ${max.steps} steps were compared.`);
  const steps = items.filter(({ kind }) => kind !== "loop").toReversed();
  return unit === undefined ? [...new Map(steps.map((step) => [stepKey(step), step])).values()] : steps;
}

type History = ReadonlyMap<string, readonly number[]>;

/** How long the last good steps took before this loop, by step. */
async function readHistory({ deps, context: { workspace }, side: { session, unit } }: Reading): Promise<History> {
  if (unit === undefined) return new Map();
  const kinds =
    unit.kind === "command" ? ["command"] : ["build", "test", "render", "deploy", "check", "verify", "exec"];
  const request = { workspace, sources: [session.source], kinds, outcomes: ["succeeded"], at: unit.start_position };
  const { items } = await deps.query.listOperations({ ...request, limit: max.history });
  const ran = items.filter(({ cache_hit, duration_ms }) => !cache_hit && duration_ms !== undefined);
  const groups = Map.groupBy(ran, stepKey);
  return new Map([...groups].map(([key, steps]) => [key, steps.map(({ duration_ms = 0n }) => Number(duration_ms))]));
}

/** Fewer are no habit. */
const fewest = 3;

function median(durations: readonly number[] = []): number | undefined {
  if (durations.length < fewest) return undefined;
  return durations.toSorted((a, b) => a - b)[Math.floor(durations.length / 2)];
}

function summaryStep(step: Operation, history: History): SummaryStep {
  return {
    kind: step.kind,
    subject: step.subject,
    outcome: outcomeOf(step),
    durationMs: step.duration_ms === undefined ? undefined : Number(step.duration_ms),
    isCached: step.cache_hit,
    platform: step.platform,
    position: step.end_position || step.start_position,
    usualMs: median(history.get(stepKey(step))),
  };
}

type EventRange = {
  readonly kinds: readonly string[];
  readonly after: string;
  readonly until: string;
  readonly limit: number;
};

/** `isPart`: there are more, or there may be. */
type FoundEvents = { readonly items: readonly EventJson[]; readonly isPart: boolean };

async function firstEvents(reading: Reading, range: EventRange): Promise<FoundEvents> {
  const { items, nextPage } = await pageOf(reading, range);
  return { items, isPart: nextPage !== undefined };
}

/** The newest, ascending. */
async function newestEvents(reading: Reading, { limit, ...range }: EventRange): Promise<FoundEvents> {
  // One more shows whether there are more.
  const { items, isCut = false } = await pageOf(reading, { ...range, limit: limit + 1, last: limit + 1 });
  return { items: items.slice(-limit), isPart: isCut || items.length > limit };
}

function pageOf(
  { deps, context, side }: Reading,
  { kinds, ...range }: EventRange & { readonly last?: number },
): Promise<EventsPage> {
  const { workspace, signal } = context;
  const filter = parseFilter({ sessions: [side.session.session], kinds });
  return deps.events({ workspace, signal, filter, orFewer: true, ...range });
}

/** The failures in the loop, the reports about its resources, and the end of a command. */
async function readEvents(reading: Reading, late: LateOnV2 | undefined): Promise<readonly EventJson[]> {
  const { session, unit, position } = reading.side;
  const after = unit?.start_position || session.start_position;
  const request = { kinds: ["*.failed", "resource.*", "command.finished"], limit: max.events };
  const [own, more] = await Promise.all([
    newestEvents(reading, { ...request, after, until: position }),
    late === undefined ? undefined : newestEvents(reading, { ...request, after: position, until: late.position }),
  ]);
  if (own.isPart || more?.isPart)
    reading.unread.add("Only the newest of its failures and reports of resources were compared.");
  return [...own.items, ...(more?.items ?? []).filter(({ channel }) => channel === "v2")];
}

/** Where the configuration was recorded that the loop had. */
async function readConfigured(reading: Reading): Promise<string> {
  const { session, position } = reading.side;
  const range = { kinds: ["session.configured"], after: session.start_position, until: position, limit: 1 };
  const { items } = await newestEvents(reading, range);
  return items[0]?.position ?? session.start_position;
}

/** The files that had changed when the loop began. `tapedeck run` asks git then, so the answer may follow the loop's end. */
async function readCheckout(reading: Reading): Promise<Checkout | undefined> {
  const { session, unit, position } = reading.side;
  if (unit?.started_at === undefined) return undefined;
  const at = msOfTimestamp(unit.started_at);
  const kinds = ["session.labelled"];
  const [before, late] = await Promise.all([
    newestEvents(reading, { kinds, after: session.start_position, until: position, limit: max.checkouts }),
    firstEvents(reading, { kinds, after: position, until: reading.context.at, limit: 1 }),
  ]);
  const changes = [...before.items, ...late.items].flatMap(({ occurredAt = "", detail, position }): FileChanges[] => {
    const changed = detail?.changedFiles as Omit<FileChanges, "at" | "position"> | undefined;
    const ms = Date.parse(occurredAt);
    return changed === undefined || ms > at ? [] : [{ ...changed, at: ms, position }];
  });
  const from = before.isPart ? { from: Date.parse(before.items[0]?.occurredAt ?? "") } : {};
  return { source: session.source, at, changes, ...from };
}

/** Resources with the texts of their last events, and the positions. The state may lack those that only events name. */
function withTexts(known: FoundByName, events: readonly EventJson[]): FoundByName {
  const resourceEvents = events.filter(({ kind }) => kind.startsWith("resource."));
  const last = new Map(resourceEvents.map((event) => [event.subject ?? "", event]));
  const failed = [...last].filter(([name, { kind }]) => kind === "resource.failed" && !known.has(name));
  const all = [...known, ...failed.map(([name, { position }]) => [name, { value: "failed", position }] as const)];
  return new Map(
    all.map(([name, found]) => {
      const event = last.get(name);
      if (event === undefined) return [name, found];
      const summary = event.error?.message ?? "";
      const said = explain({ output: "", summary, step: "check" })?.cause ?? "";
      const isBare = found.value === "ready" || said === "";
      return [name, { value: isBare ? found.value : `${found.value}: ${said}`, position: event.position }];
    }),
  );
}

/** Why the side failed: the failed step that ended first, or all of it where none did. */
async function readFailure(
  reading: Reading,
  steps: readonly Operation[],
  events: readonly EventJson[],
): Promise<Failure | undefined> {
  const { unit } = reading.side;
  const failed = firstFailed(unit, steps);
  const first = failed?.step ?? (unit?.outcome === "failed" ? unit : undefined);
  if (first === undefined) return unit === undefined ? readSessionFailure(reading) : undefined;
  const event = events.find(({ position }) => position === first.end_position);
  const cause = first.cause ?? unit?.cause;
  return {
    phase: first.kind,
    subject: first.subject,
    code: first.error_code,
    text: first.error || (event?.error?.message ?? "") || (unit?.error ?? ""),
    suggestions: event?.error?.suggestions ?? [],
    position: first.end_position || first.start_position,
    tries: failed?.tries ?? 1,
    cause,
    output: await readOutput(reading, first, cause),
  };
}

/** A process that failed although no step did: before the first one began, or between two. What it printed is all that is known. */
async function readSessionFailure(reading: Reading): Promise<Failure | undefined> {
  const { session, position } = reading.side;
  const { exit_code, end_reason: text, start_position, cause } = session;
  if (!session.ended || (exit_code ?? 0) === 0) return undefined;
  const output = await readOutput(reading, { start_position, end_position: position }, cause);
  return { phase: "session", subject: "", code: "", text, cause, suggestions: [], position, tries: 1, output };
}

/**
 * The output around the cause. Skaffold reports its output on another channel than the step, so some of it may stand before
 * the step's start in the log, and some after its end.
 */
async function readOutput(
  reading: Reading,
  step: Pick<Operation, "start_position" | "end_position">,
  cause: Cause | undefined,
): Promise<readonly OutputLine[]> {
  if (cause === undefined || cause.text === "") return [];
  const kinds = textKinds;
  const end = step.end_position || reading.side.position;
  const [before, after] = await Promise.all([
    newestEvents(reading, {
      kinds,
      after: reading.side.unit?.start_position ?? step.start_position,
      until: end,
      limit: max.lines,
    }),
    firstEvents(reading, { kinds, after: end, until: reading.context.at, limit: max.lines }),
  ]);
  const around = outputAround([...before.items, ...after.items], cause.text);
  if (around.length === 0 && (before.isPart || after.isPart))
    reading.unread.add("The cause was searched for in a part of its output, so the lines around it may be missing.");
  return around;
}
