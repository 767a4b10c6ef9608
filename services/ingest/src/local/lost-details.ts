import { timeToJson } from "@tapedeck/shared/events/time-text";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { Recorder } from "../record/recorder.ts";

/** How many are named: those that were seen last, so that a new loss is always among them. */
const maxNamed = 20;

/** The /readyz details of sources whose tap is gone and awaited; nothing without such sources. */
export function lostDetails(lost: Recorder["lost"]): Readonly<Record<string, unknown>> {
  if (lost.size === 0) return {};
  const newestFirst = [...lost].toSorted(([, one], [, other]) => compareTimestamps(other, one));
  const named = newestFirst.slice(0, maxNamed).map(([source, since]) => [source, `last seen ${timeToJson(since)}`]);
  return { lostSources: lost.size, lost: Object.fromEntries(named) };
}
