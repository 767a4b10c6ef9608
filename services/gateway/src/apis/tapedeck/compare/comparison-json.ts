import type { ComparedSide, CompareResponse } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import type { AnswerOf } from "../answers.ts";
import { causeJson, numberJson, textJson, timeJson } from "../lists.ts";

/** A comparison in the HTTP API. */
export function comparisonJson({
  left,
  right,
  differences,
  equal,
  same,
  omitted,
  position,
}: CompareResponse): AnswerOf<"Comparison"> {
  if (left === undefined) throw new Error("a comparison has a left side");
  return {
    left: sideJson(left),
    right: right === undefined ? null : sideJson(right),
    differences: differences.map(({ left = null, right = null, ...difference }) => {
      const { kind, evidence } = difference as unknown as Pick<AnswerOf<"Difference">, "kind" | "evidence">;
      return { ...difference, kind, left, right, evidence };
    }),
    same: same.map((fact) => ({ ...fact, kind: fact.kind as AnswerOf<"Difference">["kind"] })),
    equal,
    omitted,
    position,
  };
}

function sideJson({
  started_at,
  ended_at,
  duration_ms,
  start_position,
  outcome,
  failure,
  ...side
}: ComparedSide): AnswerOf<"ComparedSide"> {
  const { unit, upstream } = side as unknown as Pick<AnswerOf<"ComparedSide">, "unit" | "upstream">;
  return {
    ...side,
    unit,
    upstream,
    outcome: textJson(outcome) as AnswerOf<"ComparedSide">["outcome"],
    startedAt: timeJson(started_at),
    endedAt: timeJson(ended_at),
    durationMs: numberJson(duration_ms),
    startPosition: start_position,
    failure: failure === undefined ? null : failureJson(failure),
  };
}

function failureJson({
  error_code,
  cause,
  output,
  ...failure
}: NonNullable<ComparedSide["failure"]>): NonNullable<AnswerOf<"ComparedSide">["failure"]> {
  return {
    ...failure,
    errorCode: error_code,
    cause: causeJson(cause),
    output: output.map(({ text, position, is_cause }) => ({ text, position, isCause: is_cause })),
  };
}
