import { seeded } from "@tapedeck/shared/testing/seeded";
import { it } from "vitest";
import type { Kill, Muted } from "./server-kill.ts";
import { fates } from "./server-kill.ts";
import { killAt, killPoints, serverKillsLoseNothing } from "./server-kills.ts";

const sample = "up";
/** The part of a job's last output and end that is not observed. */
const muted: readonly (readonly Muted[])[] = [["states", "list"], ["output"], ["output", "states", "list"]];

it("a Vagrant server may be killed anywhere: what it still knows is recorded once, what it lost is a gap", async () => {
  const random = seeded("vagrant server kills");
  const { all, ends } = killPoints(sample);
  const anywhere = random.shuffled(fates).map((fate, index) => {
    const place = Math.floor(((index + random.below(1_000) / 1_000) * all.length) / fates.length);
    return killAt(random, sample, fate, place);
  });
  const atEnds = fates.map((fate, index): Kill => {
    const place = ends[random.below(ends.length)] ?? 0;
    const received = place - 2;
    return { sample, fate, place, received, mute: received, muted: muted[index % muted.length] ?? [] };
  });
  const last = all.at(-1) ?? 0;
  const whileWriting: Kill = { ...killAt(random, sample, "killed", last - 10), muted: [] };
  const kills = random.shuffled([...anywhere, ...atEnds, whileWriting]);
  const figures = await serverKillsLoseNothing(kills, random, { recorder: "killed beside its taps" });
  console.log(`vagrant server kills: ${kills.length}, ${JSON.stringify(figures)}`);
});
