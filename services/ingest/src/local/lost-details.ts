import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { Recorder } from "../record/recorder.ts";

/** How many are named. */
const maxNamed = 20;

/** The /readyz details of sources whose tap is gone and awaited; nothing without such sources. */
export function lostDetails(lost: Recorder["lost"]): Readonly<Record<string, unknown>> {
  if (lost.size === 0) return {};
  const named = [...lost].slice(0, maxNamed).map(([source, since]) => [source, `last seen ${timeToJson(since)}`]);
  return { lostSources: lost.size, lost: Object.fromEntries(named) };
}
