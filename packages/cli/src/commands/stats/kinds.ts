import type { StatsKind as StatsName } from "@tapedeck/client";
import { ownValue } from "@tapedeck/shared/own-value";
import { durationText } from "../../display/durations.ts";

/** A row of /api/v1/stats/…: the values of its group, and numbers. */
export type StatsRow = Readonly<Record<string, string | number | null | undefined>> & {
  readonly labels?: Readonly<Record<string, string>>;
  /** Only of loops. */
  readonly phases?: Readonly<Record<string, { readonly share: number }>>;
};

export type StatsColumn = {
  readonly title: string;
  readonly cell: (row: StatsRow) => string;
  /** Numbers are on the right. */
  readonly align?: "left";
  /** Left out on a narrow terminal. */
  readonly isExtra?: true;
};

/** One kind of statistics, as the command shows it. */
export type StatsKind = {
  /** The last part of the path, and of the command. */
  readonly name: StatsName;
  /** The text shown when there is nothing to count. */
  readonly nothing: string;
  readonly summary: string;
  readonly description: string;
  /** The columns by which it can be grouped, besides labels. */
  readonly groups: readonly string[];
  readonly group: readonly string[];
  readonly columns: readonly StatsColumn[];
  /** Whether it can be narrowed to artifacts. */
  readonly hasArtifact: boolean;
  readonly examples: readonly string[];
};

const count = (title: string, name: string): StatsColumn => ({
  title,
  cell: (row) => String(ownValue(row, name) ?? ""),
});
const length = (title: string, name: string): StatsColumn => ({
  title,
  cell: ({ [name]: ms }) => (ms === null || ms === undefined ? "-" : durationText(Number(ms))),
});

/** "3 (12 %)" of all that are counted by `total`. */
const part = (title: string, name: string, total: string): StatsColumn => ({
  title,
  cell: (row) => {
    const [some, all] = [Number(ownValue(row, name)), Number(ownValue(row, total))];
    return some === 0 || all === 0 ? String(some) : `${some} (${Math.round((some / all) * 100)} %)`;
  },
});

/** "build 61 %, deploy 30 %": the phases that took a hundredth or more, the longest first. */
const waitedFor: StatsColumn = {
  title: "WAITED FOR",
  align: "left",
  isExtra: true,
  cell: ({ phases = {} }) =>
    Object.entries(phases)
      .map(([name, { share }]) => ({ name, percent: Math.round(share * 100) }))
      .filter(({ percent }) => percent > 0)
      .toSorted((a, b) => b.percent - a.percent)
      .map(({ name, percent }) => `${name} ${percent} %`)
      .join(", ") || "-",
};

const ofAll = ["developer", "project", "source", "hour", "day", "week"] as const;
const causes = ["phase", "reason", "cause", "errorCode", "error", "artifact"] as const;

export const statsKinds: readonly StatsKind[] = [
  {
    name: "builds",
    nothing: "builds",
    summary: "show how long builds take, and how many fail",
    description: `Shows how long builds take, and how many fail. Percentiles leave out cached, canceled and unfinished builds. \
CACHED counts artifacts that were taken from the cache and not built: they are not part of BUILDS.`,
    groups: ["artifact", ...ofAll],
    group: ["artifact"],
    hasArtifact: true,
    columns: [
      count("BUILDS", "count"),
      part("FAILED", "failed", "count"),
      ...[length("P50", "p50Ms"), length("P90", "p90Ms"), length("P99", "p99Ms")],
      count("CACHED", "cached"),
    ],
    examples: ["--group artifact,project --since 7d", "alice/shop --group day"],
  },
  {
    name: "loops",
    nothing: "finished loops",
    summary: "show how long developers wait for their loops",
    description: `Shows how long developers wait for Skaffold's dev loops. The percentiles are of loops that succeeded: from the \
change until it was ready. OVERTAKEN counts loops whose next change came before they were ready. WAITED is what all loops took \
together, and WAITED FOR what they spent it on; other is the time in which no phase ran.`,
    groups: ofAll,
    group: ["project"],
    hasArtifact: true,
    columns: [
      count("LOOPS", "loops"),
      part("FAILED", "failed", "loops"),
      { ...part("OVERTAKEN", "overtaken", "loops"), isExtra: true },
      ...[length("P50", "readyP50Ms"), length("P90", "readyP90Ms")],
      { ...length("P99", "readyP99Ms"), isExtra: true },
      length("WAITED", "waitedMs"),
      waitedFor,
    ],
    examples: ["--since 30d --group week", "--group project,label.branch"],
  },
  {
    name: "failures",
    nothing: "failures",
    summary: "show what fails, by cause",
    description: `Shows what fails, by cause. A failed loop counts once, by what failed in it first.`,
    groups: [...causes, ...ofAll],
    group: ["reason", "cause"],
    hasArtifact: true,
    columns: [count("FAILURES", "failures"), count("DEVELOPERS", "developers")],
    examples: ["--since 7d", "--group phase,reason,artifact"],
  },
  {
    name: "green",
    nothing: "failed loops after good ones",
    summary: "show how long it takes until all is good again",
    description: `Shows how long it takes from a source's first failed loop to its next good one. TRIED counts the failed loops in \
between.`,
    groups: [...causes, ...ofAll],
    group: ["phase"],
    hasArtifact: true,
    columns: [
      count("RED", "red"),
      count("STILL RED", "stillRed"),
      ...[length("P50", "redP50Ms"), length("P90", "redP90Ms")],
      count("TRIED", "loopsBetween"),
    ],
    examples: ["--since 30d", "--group project,phase"],
  },
  {
    name: "flakes",
    nothing: "builds",
    summary: "show how often builds fail that the next one does not repeat",
    description: `Shows how often builds fail that the artifact's next build, in the same configuration, does not repeat. A repaired \
file counts too: flakes of several developers (SEEN BY) say more.`,
    groups: ["artifact", ...ofAll],
    group: ["project", "artifact"],
    hasArtifact: true,
    columns: [
      part("FLAKES", "flakes", "builds"),
      count("FAILED", "failed"),
      count("BUILDS", "builds"),
      count("SEEN BY", "developers"),
    ],
    examples: ["--since 30d", "--group artifact,week --project shop"],
  },
  {
    name: "commands",
    nothing: "commands",
    summary: "show how long Vagrant's commands take, and how many fail",
    description: `Shows how long the commands take that Vagrant ran, and how many fail.`,
    groups: ["command", "machine", "box", "provider", "session", "position", ...ofAll],
    group: ["command", "machine"],
    hasArtifact: false,
    columns: [count("RUNS", "runs"), part("FAILED", "failed", "runs"), length("P50", "p50Ms"), length("P90", "p90Ms")],
    examples: ["--since 30d", "--group command,box"],
  },
];
