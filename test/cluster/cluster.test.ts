import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { inject, it } from "vitest";
import { type Fault, faults, upgrades } from "./faults.ts";
import { goesOnThrough } from "./goes-on.ts";
import { versionAfter } from "./version-after.ts";

const timeout = 3_600_000;

it("a cluster loses nothing and repeats nothing, whatever of it is lost", { timeout }, async () => {
  await goesOnThrough(chosen(faults));
});

it("a cluster is upgraded, and goes back, without a break", { timeout }, async () => {
  const steps = chosen(upgrades);
  if (steps.length === 0) return;
  const after = await versionAfter(join(await mkdtemp(join(inject("serversFolder"), "after-")), "tapedeck"));
  await goesOnThrough(steps, after);
});

/** Returns all of them, or those whose names match TAPEDECK_TEST_FAULT, such as "nothing|Postgres". */
function chosen(all: readonly Fault[]): readonly Fault[] {
  const names = new RegExp(process.env.TAPEDECK_TEST_FAULT ?? "");
  return all.filter(({ name }) => names.test(name));
}
