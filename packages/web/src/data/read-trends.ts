import type { Client, GreenFigures, LoopFigures, StatsOptions, StatsRow } from "@tapedeck/client";
import { type Bin, binsBetween, binsOf } from "../model/trends/bins.ts";
import type { Choice, Pick } from "../model/trends/choice.ts";
import {
  byBin,
  type Causes,
  causeKey,
  causesOf,
  type FlakyArtifact,
  flakiest,
  nameOf,
  restKey,
  type SlowArtifact,
  seriesOf,
  slowest,
} from "../model/trends/figures.ts";
import { firstOf } from "./reading.ts";
import { about, serverNow, tapedeck } from "./tapedeck.ts";

/** Numbers of all of the range, and of each of its bins. */
type OverTime<Figures> = { readonly all: Figures | undefined; readonly bins: readonly (Figures | undefined)[] };

export type Trends = {
  readonly workspace: string;
  readonly bins: readonly Bin[];
  /** These can be chosen. */
  readonly developers: readonly string[];
  readonly projects: readonly string[];
  readonly loops: OverTime<LoopFigures>;
  readonly green: OverTime<GreenFigures>;
  readonly causes: Causes;
  readonly slow: readonly SlowArtifact[];
  readonly flaky: readonly FlakyArtifact[];
  readonly commands: readonly StatsRow<"commands">[];
};

const mostCauses = 6;
const mostArtifacts = 8;
const mostSources = 1_000;

type Range = Chosen<StatsOptions, "zone" | "from" | "to" | "developers" | "projects" | "signal">;
type Chosen<Whole, Key extends keyof Whole> = { readonly [Name in Key]?: NonNullable<Whole[Name]> };

export async function readTrends(choice: Choice, signal: AbortSignal): Promise<Trends> {
  const client = tapedeck();
  const bins = binsOf(choice, serverNow());
  const range = rangeOf(choice, bins, signal);
  const group = [choice.group] as const;
  const { stats } = client;
  const [sources, loops, loopsByBin, green, greenByBin, failures, artifacts, commands] = await Promise.all([
    firstOf(client.sources({ signal }), mostSources),
    stats.loops(range),
    stats.loops({ ...range, group }),
    stats.green(range),
    stats.green({ ...range, group }),
    stats.failures({ ...range, group: [...group, "phase", "errorCode"] }),
    readArtifacts(client, choice, range, bins),
    stats.commands({ ...range, group: ["command", "machine"] }),
  ]);
  const names = (part: "developer" | "project") => [...new Set(sources.map((source) => source[part]))].toSorted();
  return {
    // Without tokens there is one workspace, that of the sources.
    workspace: about.value?.token?.workspace ?? sources[0]?.workspace ?? "default",
    bins,
    developers: names("developer"),
    projects: names("project"),
    loops: { all: loops.items[0], bins: byBin(loopsByBin.items, bins, choice.group) },
    green: { all: green.items[0], bins: byBin(greenByBin.items, bins, choice.group) },
    causes: causesOf(failures.items, bins, choice.group, mostCauses),
    ...artifacts,
    commands: commands.items.toSorted((a, b) => (b.p90Ms ?? 0) - (a.p90Ms ?? 0)),
  };
}

function rangeOf({ zone, developers, projects }: Choice, bins: readonly Bin[], signal: AbortSignal): Range {
  const [first, last] = [bins.at(0), bins.at(-1)];
  return {
    ...{ zone, developers, projects, signal },
    ...{ from: new Date(first?.from ?? 0), to: new Date(last?.to ?? 0) },
  };
}

/** The slowest and the flakiest, and only of these how they were by time. */
async function readArtifacts({ stats }: Client, { group }: Choice, range: Range, bins: readonly Bin[]) {
  const [builds, flakes] = await Promise.all([
    stats.builds({ ...range, group: ["project", "artifact"] }),
    stats.flakes({ ...range, group: ["project", "artifact"] }),
  ]);
  const [slow, flaky] = [slowest(builds.items, mostArtifacts), flakiest(flakes.items, mostArtifacts)];
  // By project, too: many projects have an artifact of the same name.
  const named = (rows: readonly { readonly project?: string; readonly artifact?: string }[]) => ({
    artifacts: rows.flatMap(({ artifact }) => artifact ?? []),
    projects: [...new Set(rows.flatMap(({ project }) => project ?? []))],
  });
  const columns = ["project", "artifact", group] as const;
  const [buildsByBin, flakesByBin] = await Promise.all([
    slow.length === 0 ? undefined : stats.builds({ ...range, group: columns, ...named(slow) }),
    flaky.length === 0 ? undefined : stats.flakes({ ...range, group: columns, ...named(flaky) }),
  ]);
  const own = <Row extends StatsRow<"builds"> | StatsRow<"flakes">>(rows: readonly Row[] | undefined, of: Row) =>
    byBin<Row>(rows?.filter((row) => nameOf(row) === nameOf(of)) ?? [], bins, group);
  return {
    slow: slow.map((row): SlowArtifact => {
      const { project = "", artifact = "", p50Ms, p90Ms } = row;
      const series = seriesOf(own(buildsByBin?.items, row), ({ p50Ms }) => p50Ms);
      return { project, artifact, builds: Number(row.count), p50Ms, p90Ms, series };
    }),
    flaky: flaky.map((row): FlakyArtifact => {
      const { project = "", artifact = "", builds, flakes, developers } = row;
      const series = seriesOf(own(flakesByBin?.items, row), (one) => Number(one.flakes));
      const numbers = { builds: Number(builds), flakes: Number(flakes), developers: Number(developers) };
      return { project, artifact, ...numbers, series };
    }),
  };
}

/** A loop behind a number. */
export type Behind = {
  /** "session.runner.loop" */
  readonly loop: string;
  readonly source: string;
  readonly at: number;
  /** Milliseconds: of the wait, until it was green, or of the build. */
  readonly ms: number | null;
  readonly isFailed: boolean;
  readonly isOvertaken: boolean;
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
  const found = await reads[pick.chart](tapedeck(), rangeOf(choice, bins, signal), pick, causes);
  return found.toSorted((a, b) => (b.ms ?? 0) - (a.ms ?? 0) || b.at - a.at);
}

const rows = ["loop", "time", "source"] as const;
type Named = { readonly loop?: string; readonly source?: string; readonly time?: string };

function behind({ loop = "", source = "", time = "" }: Named, more: Partial<Behind> = {}): Behind {
  const unknown = { ms: null, isFailed: false, isOvertaken: false, text: "" };
  return { loop, source, at: Date.parse(time), ...unknown, ...more };
}

type Read = (client: Client, range: Range, pick: Pick, causes: Causes) => Promise<readonly Behind[]>;

const loopsBehind =
  (isWanted: (row: StatsRow<"loops">) => boolean): Read =>
  async ({ stats }, range) =>
    (await stats.loops({ ...range, group: rows })).items
      .filter(isWanted)
      .map((row) =>
        behind(row, { ms: Number(row.waitedMs), isFailed: row.failed !== "0", isOvertaken: row.overtaken !== "0" }),
      );

const reads: Readonly<Record<Pick["chart"], Read>> = {
  // A loop that failed, was canceled or has an unknown outcome was never ready.
  wait: loopsBehind(({ readyP50Ms }) => readyP50Ms !== null),
  overtaken: loopsBehind(({ overtaken }) => overtaken !== "0"),
  green: async ({ stats }, range) =>
    (await stats.green({ ...range, group: [...rows, "phase", "error"] })).items.map((row) =>
      behind(row, { ms: row.redP50Ms, isFailed: true, text: textOf(row) }),
    ),
  failures: async ({ stats }, range, { of }, causes) => {
    const { items } = await stats.failures({ ...range, group: [...rows, "phase", "errorCode", "error"] });
    const top = new Set(causes.top.map(({ key }) => key));
    const isWanted = (key: string) => of === undefined || (of === restKey ? !top.has(key) : key === of);
    return items
      .filter((row) => isWanted(causeKey(row)))
      .map((row) => behind(row, { isFailed: true, text: textOf(row) }));
  },
  slow: async ({ stats }, range, { of = "" }) =>
    (await stats.builds({ ...range, ...artifactOf(of), group: rows })).items
      .filter(({ count }) => count !== "0")
      .map((row) => behind(row, { ms: row.p50Ms, isFailed: row.failed !== "0" })),
  flaky: async ({ stats }, range, { of = "" }) =>
    (await stats.flakes({ ...range, ...artifactOf(of), group: rows })).items
      .filter(({ flakes }) => flakes !== "0")
      .map((row) => behind(row, { isFailed: true })),
};

function textOf({ phase = "", error = "" }: { readonly phase?: string; readonly error?: string }): string {
  return [phase, error.split("\n")[0] ?? ""].filter((part) => part !== "").join(": ");
}

/** "project/artifact", of which the artifact may hold slashes. */
function artifactOf(name: string) {
  const at = name.indexOf("/");
  return { projects: [name.slice(0, at)], artifacts: [name.slice(at + 1)] };
}
