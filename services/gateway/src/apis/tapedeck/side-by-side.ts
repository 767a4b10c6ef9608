import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { StatsParameters } from "./parameters.ts";

/** The setting that refusals name. */
export const compareSetting = "privacy.compareDevelopers";

/** Figures by one of these stand beside those of others. */
const ofPeople = ["developer", "source"];

/** A row for each loop, or each command, is a list and no figure of a person. */
const ofList = ["loop", "position"];

/** @throws TapedeckError forbidden for statistics that are grouped by developers, unless they are of one */
export function refuseGroupedByDeveloper({ group = [], developer = [], source = [] }: StatsParameters): void {
  if (!group.some((name) => ofPeople.includes(name)) || group.some((name) => ofList.includes(name))) return;
  const named = new Set([...developer, ...source.map((name) => name.split("/").at(-3) ?? name.split("/")[0])]);
  if (named.size === 1) return;
  throw new TapedeckError(
    "forbidden",
    `statistics by developer are off here: name one developer, or switch them on with the setting ${compareSetting}`,
  );
}

/** @throws TapedeckError forbidden for recordings of two developers */
export function refuseTwoDevelopers(one: string, other: string): void {
  const [developer, second] = [one, other].map((source) => source.split("/")[1]);
  if (developer === second) return;
  throw new TapedeckError(
    "forbidden",
    `comparing the recordings of two developers is off here: the setting ${compareSetting} switches it on`,
  );
}
