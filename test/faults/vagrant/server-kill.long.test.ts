import { searched } from "@tapedeck/shared/testing/searches";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { it } from "vitest";
import { fates, sampleNames } from "./server-kill.ts";
import type { KillsOptions } from "./server-kills.ts";
import { killAt, killPoints, serverKillsLoseNothing } from "./server-kills.ts";

/** The number of servers that one ingest records at once. */
const atOnce = searched({ short: 5, long: 15 });

/** In turns: ingest keeps running, is killed with its taps, or beside them. */
const recorders: readonly KillsOptions[] = [{}, { recorder: "killed" }, { recorder: "killed beside its taps" }];

it.each(fates)(
  "Vagrant servers, each %s at another position: what is still known is recorded once, what is not is a gap",
  async (fate) => {
    const random = seeded(`vagrant servers ${fate}`);
    const places = sampleNames.flatMap((name) =>
      killPoints(name).all.map((place) => killAt(random, name, fate, place)),
    );
    const kills = random.shuffled(places).slice(0, searched({ short: atOnce * recorders.length, long: places.length }));
    for (let from = 0; from < kills.length; from += atOnce) {
      const some = kills.slice(from, from + atOnce);
      const options = recorders[(from / atOnce) % recorders.length];
      const figures = await serverKillsLoseNothing(some, random, options);
      console.log(`${some.length} servers ${fate}, ingest ${options?.recorder ?? "alive"}: ${JSON.stringify(figures)}`);
    }
  },
);
