import type { Migration } from "kysely/migration";
import { operationIndexes } from "./0011-operation-indexes.ts";
import { loopTimes } from "./0012-loop-times.ts";
import { buildMonths } from "./0013-build-months.ts";
import { loopLabels } from "./0014-loop-labels.ts";
import { flakesWithoutLoops } from "./0015-flakes-without-loops.ts";
import { dashboards } from "./0016-dashboards.ts";
import { causesAndShares } from "./0017-causes-and-shares.ts";
import { buildDays } from "./0018-build-days.ts";
import { failedJobsAndInjectedBuilds } from "./0019-failed-jobs-and-injected-builds.ts";
import { redTimes } from "./0020-red-times.ts";
import { setAsideEvents } from "./0021-set-aside-events.ts";
import { sessionCommands } from "./0022-session-commands.ts";
import { tables } from "./to-0010/0001-tables.ts";
import { state } from "./to-0010/0002-state.ts";
import { buildTimes } from "./to-0010/0003-build-times.ts";
import { rkt } from "./to-0010/0004-rkt.ts";
import { vagrant } from "./to-0010/0005-vagrant.ts";
import { lost } from "./to-0010/0006-lost.ts";
import { vagrantJobSpans } from "./to-0010/0007-vagrant-job-spans.ts";
import { checkpointMoment } from "./to-0010/0008-checkpoint-moment.ts";
import { offsets } from "./to-0010/0009-offsets.ts";
import { eventPositions } from "./to-0010/0010-event-positions.ts";

/** In the order of their names. A released migration never changes; add the next one. Older ones are in folders of ten. */
export const migrations: Readonly<Record<string, Migration>> = {
  "0001-tables": tables,
  "0002-state": state,
  "0003-build-times": buildTimes,
  "0004-rkt": rkt,
  "0005-vagrant": vagrant,
  "0006-lost": lost,
  "0007-vagrant-job-spans": vagrantJobSpans,
  "0008-checkpoint-moment": checkpointMoment,
  "0009-offsets": offsets,
  "0010-event-positions": eventPositions,
  "0011-operation-indexes": operationIndexes,
  "0012-loop-times": loopTimes,
  "0013-build-months": buildMonths,
  "0014-loop-labels": loopLabels,
  "0015-flakes-without-loops": flakesWithoutLoops,
  "0016-dashboards": dashboards,
  "0017-causes-and-shares": causesAndShares,
  "0018-build-days": buildDays,
  "0019-failed-jobs-and-injected-builds": failedJobsAndInjectedBuilds,
  "0020-red-times": redTimes,
  "0021-set-aside-events": setAsideEvents,
  "0022-session-commands": sessionCommands,
};
