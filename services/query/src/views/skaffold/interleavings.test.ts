import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import fc from "fast-check";
import { expect, it } from "vitest";
import { answers } from "./testing/answers.ts";
import {
  build,
  buildV2,
  call,
  deploy,
  fold,
  injected,
  loop,
  port,
  runner,
  runnerV2,
  sync,
  taskV2,
  test,
} from "./testing/builders.ts";

const builds = call("Execute", { intent: { build: true } });
const deploys = call("Execute", { intent: { deploy: true } });

const v1Steps = [
  runner,
  ...Array<Event>(3).fill(loop("In Progress")),
  loop("Succeeded"),
  loop("Failed", "UNKNOWN_ERROR"),
  build("web", "In Progress"),
  build("web", "Complete"),
  build("api", "Failed", "BUILD_UNKNOWN"),
  test("Failed", "TEST_UNKNOWN"),
  deploy("In Progress"),
  deploy("Complete"),
  sync("Succeeded"),
  injected(sync("Odd")),
  injected(build("mine", "Odd")),
  port(1),
  builds.requested,
  builds.accepted,
  deploys.requested,
  deploys.accepted,
];

const v2Steps = [
  runnerV2("a", "web", "api"),
  runnerV2("b", "web", "worker"),
  ...Array<Event>(3).fill(taskV2("DevLoop")),
  taskV2("Build"),
  taskV2("Test"),
  taskV2("Render"),
  buildV2("web", "Succeeded"),
];

it("folds to the same state however v1 and v2 interleave, for any events", () => {
  const v1 = fc.array(fc.constantFrom(...v1Steps), { maxLength: 25 });
  const v2 = fc.array(fc.constantFrom(...v2Steps), { maxLength: 15 });
  const places = fc.array(fc.nat(25), { minLength: 15, maxLength: 15 });
  const runs = fc.property(v1, v2, places, (v1Events, v2Events, anyPlaces) => {
    const place = anyPlaces.toSorted((a, b) => a - b);
    const before = (index: number) => v2Events.filter((_event, number) => place[number] === index);
    const interleaved = v1Events.flatMap((event, index) => [...before(index), event]);
    const rest = v2Events.filter((_event, number) => (place[number] ?? 0) >= v1Events.length);
    const folded = answers(fold(...interleaved, ...rest));
    expect(folded).toEqual(answers(fold(...v1Events, ...v2Events)));
    expect(folded).toEqual(answers(fold(...v2Events, ...v1Events)));
  });
  fc.assert(runs, { numRuns: 2_000 });
});
