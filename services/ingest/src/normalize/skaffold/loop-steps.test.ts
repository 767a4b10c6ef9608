import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import { type LoopSteps, noSteps, stepsAfter } from "./loop-steps.ts";

function build(subject: string, kind: "build.started" | "build.failed") {
  const outcome = kind === "build.failed" ? Outcome.OUTCOME_FAILED : Outcome.OUTCOME_NONE;
  const operation = { kind: "build", subject, runner: 1, loop: 1 };
  return { kind, operation, outcome, error: undefined, at: undefined } as const;
}

it.each(["build.started", "build.failed"] as const)("%s of ever new artifacts fills no memory", (kind) => {
  let steps: LoopSteps = stepsAfter(noSteps, build("api", "build.failed"));
  for (let i = 0; i < 3_000; i++) steps = stepsAfter(steps, build(`web-${i}`, kind));
  const { failing, building, failedBuild } = steps;
  for (const { size } of [failing, building, failedBuild?.others ?? new Set()]) expect(size).toBeLessThanOrEqual(1_000);
  expect([...failing.values()][0]).toMatchObject({ subject: "api", tries: 1 });
});
