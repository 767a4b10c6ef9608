import { writeTogether } from "@tapedeck/query/testing/scenario";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { type Comparison, isCause } from "./is-cause.ts";
import { laterRktCauses, rktCauses } from "./rkt-causes.ts";
import { laterSkaffoldCauses, skaffoldCauses } from "./skaffold-causes.ts";
import { laterVagrantCauses, vagrantCauses } from "./vagrant-causes.ts";

let seeded: SeededStack;
const goodUntil = new Map<string, string>();
/**
 * The first 24 were planted blind, before any comparison; the others after the ranking had been corrected for those.
 */
const causes = [
  ...[...skaffoldCauses, ...rktCauses, ...vagrantCauses],
  ...[...laterSkaffoldCauses, ...laterRktCauses, ...laterVagrantCauses],
];

beforeAll(async () => {
  seeded = await startSeededStack();
  for (const { name, events, rightAfter = 0 } of causes) {
    if (rightAfter > 0)
      goodUntil.set(name, seeded.endAt((await seeded.write(events.slice(0, rightAfter))).at(-1) ?? 0));
    await writeTogether(seeded.log, events.slice(rightAfter), 200);
  }
  await seeded.stack.caughtUp();
});
afterAll(() => seeded[Symbol.asyncDispose]());

it.each(causes)("$name", async ({ name, left, right, cause }) => {
  const at = goodUntil.get(name);
  const sides = new URLSearchParams({ left, ...(right && { right: at ? `${right}@${at}` : right }) });
  const { status, body } = await seeded.stack.httpCall("GET", `/api/v1/compare?${sides}`);
  expect(status, body).toBe(200);
  const compared = JSON.parse(body) as Comparison;
  const rank = compared.differences.findIndex((one) => isCause(one, compared, cause)) + 1;
  expect(compared.right?.failure ?? null, body).toBeNull();
  expect(rank, JSON.stringify(compared, undefined, 1)).toBe(1);
});
