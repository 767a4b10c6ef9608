import type { Bench } from "../frame/bench.ts";
import { fanout } from "./fanout.ts";
import { harm } from "./harm.ts";
import { history } from "./history.ts";
import { idle } from "./idle.ts";
import { ingest } from "./ingest.ts";
import { live } from "./live.ts";
import { mcp } from "./mcp.ts";
import { memory } from "./memory.ts";
import { parquet } from "./parquet.ts";
import { peers } from "./peers/peers.ts";
import { projection } from "./projection.ts";
import { realSkaffold } from "./real-skaffold.ts";
import { replay } from "./replay.ts";
import { search } from "./search.ts";
import { sinks } from "./sinks.ts";
import { state } from "./state.ts";
import { stats } from "./stats.ts";
import { views } from "./views.ts";
import { workspaces } from "./workspaces.ts";

/** The parts by their names on the command line. */
export const parts = {
  ingest,
  replay,
  fanout,
  state,
  projection,
  history,
  stats,
  search,
  mcp,
  live,
  idle,
  memory,
  sinks,
  harm,
  workspaces,
  peers,
  views,
  parquet,
  "real-skaffold": realSkaffold,
} satisfies Record<string, (bench: Bench) => Promise<void>>;

export type PartName = keyof typeof parts;
export const partNames = Object.keys(parts) as readonly PartName[];
const unusual: ReadonlySet<PartName> = new Set(["views", "parquet", "real-skaffold"]);
/**
 * The parts of a run that names none. The views and the export are meaningful only at millions of operations, and the real
 * Skaffold needs a project.
 */
export const defaultParts = partNames.filter((name) => !unusual.has(name));

/** How a part's figures depend on the size of the log (or the tables). */
type SizeMatters =
  /** Answers should take the same time at any size: measured at each size. */
  | "yes"
  /** A rate: the size determines how long its runs take. Measured at one size, unless several are requested. */
  | "duration"
  /** Measured once. */
  | "no";

const sizeMatters: Readonly<Record<PartName, SizeMatters>> = {
  state: "yes",
  history: "yes",
  stats: "yes",
  search: "yes",
  mcp: "yes",
  views: "yes",
  replay: "duration",
  projection: "duration",
  parquet: "duration",
  ingest: "no",
  fanout: "no",
  live: "no",
  idle: "no",
  memory: "duration",
  sinks: "no",
  harm: "no",
  workspaces: "no",
  peers: "no",
  "real-skaffold": "no",
};

/** One run of a part. */
export type Run = { readonly name: PartName; readonly size: number };

/** The log size from which the rate of a full run is meaningful. */
const rateSize = 100_000;

/** Returns all runs of these parts. `requestedSizes`: the caller's sizes; undefined: those of a full run or of a quick one. */
export function runsOf(
  names: readonly PartName[],
  requestedSizes: readonly number[] | undefined,
  quick: boolean,
): Run[] {
  const sizes = requestedSizes ?? (quick ? [10_000] : [10_000, 1_000_000]);
  const rateSizes = requestedSizes ?? [quick ? 10_000 : rateSize];
  return names.flatMap((name) => {
    const of = { yes: sizes, duration: rateSizes, no: rateSizes.slice(0, 1) }[sizeMatters[name]];
    return of.map((size) => ({ name, size }));
  });
}
