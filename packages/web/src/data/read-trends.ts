import type { Client, GreenFigures, LoopFigures, StatsOptions, StatsRow } from "@tapedeck/client";
import { type Bin, binsBetween, binsOf } from "../model/trends/bins.ts";
import type { Choice, Pick, TrendsSide } from "../model/trends/choice.ts";
import {
  byBin,
  type Causes,
  causeKey,
  causesOf,
  commandKey,
  type FlakyArtifact,
  flakiest,
  maxCauses,
  nameOf,
  phases,
  restKey,
  type Series,
  type SlowArtifact,
  seriesOf,
  slowest,
} from "../model/trends/figures.ts";
import { type Answered, answered, firstOf } from "./reading.ts";
import { about, serverNow, tapedeck } from "./tapedeck.ts";

/** Numbers of all of the range, and of each of its bins. */
export type OverTime<Figures> = { readonly all: Figures | undefined; readonly bins: readonly (Figures | undefined)[] };

export type Trends = {
  readonly workspace: string;
  readonly bins: readonly Bin[];
  /** These can be chosen. */
  readonly developers: readonly string[];
  readonly projects: readonly string[];
  /** "branch=main" */
  readonly labels: readonly string[];
  /** The developers or projects to compare, the longest wait first; undefined: none. */
  readonly sides: Answered<readonly SideFigures[]> | undefined;
  readonly loops: Answered<OverTime<LoopFigures>>;
  readonly green: Answered<OverTime<GreenFigures>>;
  readonly causes: Answered<Causes>;
  /** The same of the time of equal length before. */
  readonly before: Answered<Before>;
  readonly slow: Answered<readonly SlowArtifact[]>;
  readonly flaky: Answered<readonly FlakyArtifact[]>;
  readonly commands: Answered<readonly StatsRow<"commands">[]>;
};

/** A developer or a project beside others. */
export type SideFigures = LoopFigures & { readonly name: string; readonly series: Series };

/** What a time is compared with. */
export type Before = {
  readonly loops: LoopFigures | undefined;
  /** Failures by `causeKey`. */
  readonly causes: ReadonlyMap<string, number>;
};

const maxArtifacts = 8;
const maxSources = 1_000;

type Range = Chosen<StatsOptions, "zone" | "from" | "to" | "developers" | "projects" | "labels" | "signal">;
type Chosen<Whole, Key extends keyof Whole> = { readonly [Name in Key]?: NonNullable<Whole[Name]> };

/** Each chart by itself: one whose numbers are refused leaves the others as they are. */
export async function readTrends(choice: Choice, signal: AbortSignal): Promise<Trends> {
  const client = tapedeck();
  const bins = binsOf(choice, serverNow());
  const range = rangeOf(choice, bins, signal);
  const own = <Value>(pending: Promise<Value>, nothing: Value) => answered(pending, nothing, signal);
  const noTime = { all: undefined, bins: [] };
  const [{ value: sources }, { value: labels }, sides, loops, green, causes, before, slow, flaky, commands] =
    await Promise.all([
      own(firstOf(client.sources({ signal }), maxSources), []),
      own(readBranches(client, range), []),
      choice.by && own(readSides(client, choice, choice.by, range, bins), []),
      own(readLoops(client, choice, range, bins), noTime),
      own(readGreen(client, choice, range, bins), noTime),
      own(readCauses(client, choice, range, bins), { top: [], rest: undefined, count: 0 }),
      own(readBefore(client, range), { loops: undefined, causes: new Map() }),
      own(readSlow(client, choice, range, bins), []),
      own(readFlaky(client, choice, range, bins), []),
      own(readCommands(client, range), []),
    ]);
  const names = (part: "developer" | "project") => [...new Set(sources.map((source) => source[part]))].toSorted();
  return {
    // Without tokens there is one workspace, that of the sources.
    workspace: about.value?.token?.workspace ?? sources[0]?.workspace ?? "default",
    bins,
    developers: names("developer"),
    projects: names("project"),
    labels,
    sides,
    loops,
    green,
    causes,
    before,
    slow,
    flaky,
    commands,
  };
}

async function readLoops({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const [all, ofBins] = await Promise.all([stats.loops(range), stats.loops({ ...range, group: [group] })]);
  return { all: all.items[0], bins: byBin(ofBins.items, bins, group) };
}

/** The branches on which there were loops, whatever branch is chosen. */
async function readBranches({ stats }: Client, { labels: _, ...range }: Range): Promise<readonly string[]> {
  const { items } = await stats.loops({ ...range, group: ["label.branch"] });
  const branches = items.flatMap(({ labels }) => labels?.branch || []);
  return branches.map((branch) => `branch=${branch}`).toSorted();
}

async function readSides({ stats }: Client, { group }: Choice, by: TrendsSide, range: Range, bins: readonly Bin[]) {
  const [all, ofBins] = await Promise.all([
    stats.loops({ ...range, group: [by] }),
    stats.loops({ ...range, group: [by, group] }),
  ]);
  const wait = ({ readyP50Ms }: LoopFigures) => readyP50Ms ?? -1;
  return all.items
    .toSorted((a, b) => wait(b) - wait(a) || ((a[by] ?? "") < (b[by] ?? "") ? -1 : 1))
    .map((row): SideFigures => {
      const own = ofBins.items.filter((one) => one[by] === row[by]);
      return { ...row, name: row[by] ?? "", series: seriesOf(byBin(own, bins, group), ({ readyP50Ms }) => readyP50Ms) };
    });
}

async function readGreen({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const [all, ofBins] = await Promise.all([stats.green(range), stats.green({ ...range, group: [group] })]);
  return { all: all.items[0], bins: byBin(ofBins.items, bins, group) };
}

async function readCauses({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const { items } = await stats.failures({ ...range, group: [group, "reason", "cause"] });
  return causesOf(items, bins, group, maxCauses);
}

async function readBefore({ stats }: Client, range: Range): Promise<Before> {
  const [from, to] = [range.from, range.to].map((at) => new Date(at ?? 0).getTime());
  if (from === undefined || to === undefined) return { loops: undefined, causes: new Map() };
  const before = { ...range, from: new Date(from - (to - from)), to: new Date(from) };
  const [loops, failures] = await Promise.all([
    stats.loops(before),
    stats.failures({ ...before, group: ["reason", "cause"] }),
  ]);
  return { loops: loops.items[0], causes: new Map(failures.items.map((row) => [causeKey(row), Number(row.failures)])) };
}

async function readCommands({ stats }: Client, range: Range) {
  const { items } = await stats.commands({ ...range, group: ["command", "machine"] });
  return items.toSorted((a, b) => (b.p90Ms ?? 0) - (a.p90Ms ?? 0));
}

function rangeOf({ zone, developers, projects, labels }: Choice, bins: readonly Bin[], signal: AbortSignal): Range {
  const [first, last] = [bins.at(0), bins.at(-1)];
  const named = labels.map((label) => {
    const at = label.indexOf("=");
    return [label.slice(0, at), label.slice(at + 1)];
  });
  return {
    zone,
    developers,
    projects,
    labels: Object.fromEntries(named),
    signal,
    from: new Date(first?.from ?? 0),
    to: new Date(last?.to ?? 0),
  };
}

/** The slowest, and only of these how they were by time. */
async function readSlow({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const { items } = await stats.builds({ ...range, group: ["project", "artifact"] });
  const slow = slowest(items, maxArtifacts);
  if (slow.length === 0) return [];
  const ofBins = await stats.builds({ ...range, group: ["project", "artifact", group], ...named(slow) });
  return slow.map((row): SlowArtifact => {
    const { project = "", artifact = "", p50Ms, p90Ms } = row;
    const series = seriesOf(byBin(sameArtifact(ofBins.items, row), bins, group), ({ p50Ms }) => p50Ms);
    return { project, artifact, builds: row.count, p50Ms, p90Ms, series };
  });
}

/** The flakiest, as the slowest. */
async function readFlaky({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const { items } = await stats.flakes({ ...range, group: ["project", "artifact"] });
  const flaky = flakiest(items, maxArtifacts);
  if (flaky.length === 0) return [];
  const ofBins = await stats.flakes({ ...range, group: ["project", "artifact", group], ...named(flaky) });
  return flaky.map((row): FlakyArtifact => {
    const { project = "", artifact = "", builds, flakes, developers } = row;
    const series = seriesOf(byBin(sameArtifact(ofBins.items, row), bins, group), (one) => one.flakes);
    return { project, artifact, builds, flakes, developers, series };
  });
}

type OfArtifact = { readonly project?: string; readonly artifact?: string };

/** By project, too: many projects have an artifact of the same name. */
function named(rows: readonly OfArtifact[]) {
  return {
    artifacts: rows.flatMap(({ artifact }) => artifact ?? []),
    projects: [...new Set(rows.flatMap(({ project }) => project ?? []))],
  };
}

function sameArtifact<Row extends OfArtifact>(rows: readonly Row[], of: OfArtifact): readonly Row[] {
  return rows.filter((row) => nameOf(row) === nameOf(of));
}

/** A loop behind a number, or a command. */
export type Behind = {
  /** "session.runner.loop"; of what is outside of loops with zeros. */
  readonly loop: string;
  /** Where a command began; undefined: of a loop. */
  readonly position?: string;
  readonly source: string;
  readonly at: number;
  /** Milliseconds: of the wait, until it was green, of the build, or of the command. */
  readonly ms: number | null;
  readonly isFailed: boolean;
  readonly isOvertaken: boolean;
  /** It is not green yet. */
  readonly isStillRed: boolean;
  readonly text: string;
};

/** The loops behind what is selected in a chart, from the same rows as its numbers: longest first, or newest. */
export async function readBehind(
  choice: Choice,
  all: readonly Bin[],
  pick: Pick,
  causes: Causes,
  signal: AbortSignal,
): Promise<readonly Behind[]> {
  const bins = binsBetween(all, pick.since, pick.until);
  if (bins.length === 0) return [];
  const range = rangeOf(choice, bins, signal);
  const found = await reads[pick.chart](tapedeck(), range, pick, { causes, by: choice.by ?? "developer" });
  return found.toSorted((a, b) => (b.ms ?? 0) - (a.ms ?? 0) || b.at - a.at);
}

const rows = ["loop", "time", "source"] as const;
type LoopColumns = { readonly loop?: string; readonly source?: string; readonly time?: string };

function behind({ loop = "", source = "", time = "" }: LoopColumns, more: Partial<Behind> = {}): Behind {
  const unknown = { ms: null, isFailed: false, isOvertaken: false, isStillRed: false, text: "" };
  return { loop, source, at: Date.parse(time), ...unknown, ...more };
}

type Displayed = { readonly causes: Causes; readonly by: TrendsSide };
type ReadBehind = (client: Client, range: Range, pick: Pick, displayed: Displayed) => Promise<readonly Behind[]>;

async function loopsOf({ stats }: Client, range: Range, predicate: (row: StatsRow<"loops">) => boolean) {
  return (await stats.loops({ ...range, group: rows })).items.filter(predicate).map((row) => ({
    row,
    one: behind(row, { ms: row.waitedMs, isFailed: row.failed > 0, isOvertaken: row.overtaken > 0 }),
  }));
}

const loopsBehind =
  (predicate: (row: StatsRow<"loops">) => boolean): ReadBehind =>
  async (client, range) =>
    (await loopsOf(client, range, predicate)).map(({ one }) => one);

const reads: Readonly<Record<Pick["chart"], ReadBehind>> = {
  sides: async (client, range, { of = "" }, { by }) => {
    const own = by === "developer" ? { developers: [of] } : { projects: [of] };
    return (await loopsOf(client, { ...range, ...own }, () => true)).map(({ one }) => one);
  },
  // A loop that failed, was canceled or has an unknown outcome was never ready.
  wait: loopsBehind(({ readyP50Ms }) => readyP50Ms !== null),
  overtaken: loopsBehind(({ overtaken }) => overtaken > 0),
  // The time is that of the phase alone.
  waits: async (client, range, { of = "" }) => {
    const phase = phases.find((one) => one === of);
    if (phase === undefined) return [];
    const found = await loopsOf(client, range, ({ phases }) => phases[phase].waitedMs > 0);
    return found.map(({ row, one }) => ({ ...one, ms: row.phases[phase].waitedMs }));
  },
  green: async ({ stats }, range) =>
    (await stats.green({ ...range, group: [...rows, "phase", "reason", "cause"] })).items.map((row) =>
      behind(row, { ms: row.redP50Ms, isFailed: true, isStillRed: row.stillRed > 0, text: textOf(row) }),
    ),
  failures: async ({ stats }, range, { of }, { causes }) => {
    const { items } = await stats.failures({ ...range, group: [...rows, "phase", "reason", "cause"] });
    const top = new Set(causes.top.map(({ key }) => key));
    const isOneCause = of !== undefined && of !== restKey;
    const predicate = (key: string) => of === undefined || (of === restKey ? !top.has(key) : key === of);
    return (
      items
        .filter((row) => predicate(causeKey(row)))
        // The list's title has the one cause of all.
        .map((row) => behind(row, { isFailed: true, text: isOneCause ? (row.phase ?? "") : textOf(row) }))
    );
  },
  slow: async ({ stats }, range, { of = "" }) =>
    (await stats.builds({ ...range, ...artifactOf(of), group: rows })).items
      .filter(({ count }) => count > 0)
      .map((row) => behind(row, { ms: row.p50Ms, isFailed: row.failed > 0 })),
  flaky: async ({ stats }, range, { of = "" }) =>
    (await stats.flakes({ ...range, ...artifactOf(of), group: rows })).items
      .filter(({ flakes }) => flakes > 0)
      .map((row) => behind(row, { isFailed: true })),
  commands: async ({ stats }, range, { of = "" }) => {
    const group = ["command", "machine", "session", "position", "time", "source"] as const;
    return (await stats.commands({ ...range, group })).items
      .filter((row) => commandKey(row) === of)
      .map(({ session, position = "", source = "", time = "", p50Ms, failed }) => ({
        ...behind({ loop: `${session}.0.0`, source, time }, { ms: p50Ms, isFailed: failed > 0 }),
        position,
      }));
  },
};

type OfCause = { readonly phase?: string; readonly reason?: string; readonly cause?: string };

function textOf({ phase = "", reason = "", cause = "" }: OfCause): string {
  return [phase, cause || reason].filter((part) => part !== "").join(": ");
}

/** "project/artifact", of which the artifact may hold slashes. */
function artifactOf(name: string) {
  const at = name.indexOf("/");
  return { projects: [name.slice(0, at)], artifacts: [name.slice(at + 1)] };
}
