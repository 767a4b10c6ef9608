import type { Bench } from "../frame/bench.ts";
import { fanout } from "./fanout.ts";
import { harm } from "./harm.ts";
import { history } from "./history.ts";
import { idle } from "./idle.ts";
import { ingest } from "./ingest.ts";
import { live } from "./live.ts";
import { projection } from "./projection.ts";
import { replay } from "./replay.ts";
import { state } from "./state.ts";
import { stats } from "./stats.ts";

/** The parts by the names with which they are chosen. */
export const parts = { ingest, replay, fanout, state, projection, history, stats, live, idle, harm } satisfies Record<
  string,
  (bench: Bench) => Promise<void>
>;

export type PartName = keyof typeof parts;
export const partNames = Object.keys(parts) as readonly PartName[];
