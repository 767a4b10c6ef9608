import { causes } from "./causes/causes.ts";
import { eventBlocks } from "./events/blocks.ts";
import { events } from "./events/events.ts";
import { eventGroups } from "./events/groups.ts";
import { eventPositions } from "./events/positions.ts";
import { folds } from "./folds.ts";
import { history } from "./history/history.ts";
import { loops } from "./loops/loops.ts";
import { operations } from "./operations/operations.ts";
import { sessions } from "./sessions/sessions.ts";
import { sources } from "./sources/sources.ts";
import type { NewestStates } from "./states/newest-states.ts";
import { states } from "./states/states.ts";
import { totals } from "./totals/totals.ts";
import { vagrantJobs } from "./vagrant/jobs/jobs.ts";
import { vagrantJobSpans } from "./vagrant/jobs/spans.ts";
import type { View } from "./view.ts";

export type ViewOptions = {
  /** Whether `events` has rows for log and terminal text too. */
  readonly textRows: boolean;
  /** Gets the states that are written. */
  readonly newest?: NewestStates;
};

export function views(options: ViewOptions): readonly View[] {
  return [
    sources,
    sessions,
    events(options),
    eventGroups,
    // The blocks of a batch before its positions, which are counted from them.
    eventBlocks,
    eventPositions,
    operations,
    loops,
    totals,
    causes,
    history,
    vagrantJobs,
    vagrantJobSpans,
    states(folds, options.newest),
  ];
}

/** Names what wrote the tables. A changed name makes query rebuild them from the log. */
export function projectionVersion(all: readonly View[]): string {
  const parts = all.map(({ name, version }) => `${name}.${version}`);
  return [...parts, ...Object.entries(folds).map(([name, { version }]) => `${name}.${version}`)].join(" ");
}
