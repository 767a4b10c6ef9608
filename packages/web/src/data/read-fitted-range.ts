import { fittedRange, type TrendsRange } from "../model/trends/choice.ts";
import { ownZone } from "../model/trends/zone.ts";
import { serverNow, tapedeck } from "./tapedeck.ts";

const dayMs = 86_400_000;

/** The range in which Trends has something to show. */
export async function readFittedRange(signal: AbortSignal): Promise<TrendsRange> {
  const now = serverNow();
  const days = { from: new Date(now - 365 * dayMs), to: new Date(now), zone: ownZone, group: ["day"], signal } as const;
  const { stats } = tapedeck();
  const [loops, commands] = await Promise.all([stats.loops(days), stats.commands(days)]);
  const found = [...loops.items, ...commands.items].flatMap(({ day }) => day ?? []);
  const today = new Date(now).toLocaleDateString("sv-SE", { timeZone: ownZone });
  return fittedRange(found.map((day) => Math.round((Date.parse(today) - Date.parse(day)) / dayMs)));
}
