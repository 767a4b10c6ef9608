import type { Step } from "@tapedeck/client/lanes/step";
import { waitsOf } from "@tapedeck/client/lanes/waits";
import {
  type LoopSpan,
  phases,
  type Wait as SqlWait,
  waitsOf as sqlWaitsOf,
} from "@tapedeck/query/views/loops/timeline";
import fc from "fast-check";
import { expect, it } from "vitest";

// What the page and the terminal underline is what `waits` of the SQL table `finished_loops` says.

const nanos = 1_000_000;
/** The loop's start, in milliseconds since 1970. */
const began = Date.UTC(2026, 0, 1);

type Span = { readonly phase: LoopSpan["phase"]; readonly subject: string; readonly from: number; readonly to: number };

function stepOf({ phase, subject, from, to }: Span): Step {
  return {
    kind: phase,
    subject,
    instance: "",
    startedAt: began + from,
    endedAt: began + Math.max(from, to),
    outcome: "succeeded",
    error: "",
    cause: null,
    errorCode: "",
    isUntimed: false,
    isCached: false,
    position: "",
    endPosition: "",
  };
}

/** What SQL says, without the moments in which nothing ran. */
function bySql(
  length: number,
  spans: readonly Span[],
): readonly Pick<SqlWait, "phase" | "subject" | "from_ms" | "to_ms">[] {
  const inNanos = spans.map((span) => ({ ...span, from: span.from * nanos, to: span.to * nanos }));
  return sqlWaitsOf(length * nanos, inNanos).filter(({ phase }) => phase !== "other");
}

/** What the client says, in the words of SQL, which joins waits for the same subject. */
function byClient(length: number, spans: readonly Span[]): ReturnType<typeof bySql> {
  const waits = waitsOf(spans.map(stepOf), { from: began, to: began + length, now: began + length });
  const joined: ReturnType<typeof bySql>[number][] = [];
  for (const { step, from, to } of waits) {
    const wait = {
      phase: step.kind as SqlWait["phase"],
      subject: step.subject,
      from_ms: from - began,
      to_ms: to - began,
    };
    const last = joined.at(-1);
    const isMore = last?.phase === wait.phase && last.subject === wait.subject && last.to_ms === wait.from_ms;
    if (isMore) joined[joined.length - 1] = { ...last, to_ms: wait.to_ms };
    else joined.push(wait);
  }
  return joined;
}

it("a check inside its deploy is waited for, and the deploy only around it", () => {
  const spans: readonly Span[] = [
    { phase: "build", subject: "api", from: 0, to: 30 },
    { phase: "build", subject: "web", from: 0, to: 60 },
    { phase: "deploy", subject: "", from: 62, to: 200 },
    { phase: "check", subject: "", from: 90, to: 198 },
  ];
  expect(byClient(210, spans)).toEqual([
    { phase: "build", subject: "web", from_ms: 0, to_ms: 60 },
    { phase: "deploy", subject: "", from_ms: 62, to_ms: 90 },
    { phase: "check", subject: "", from_ms: 90, to_ms: 198 },
    { phase: "deploy", subject: "", from_ms: 198, to_ms: 200 },
  ]);
  expect(byClient(210, spans)).toEqual(bySql(210, spans));
});

it("a loop waits for a sync until it is tried again", () => {
  const tried = (from: number, to: number, subject: string, outcome: Step["outcome"]) => ({
    ...stepOf({ phase: "sync", subject, from, to }),
    outcome,
  });
  const steps = [
    tried(1, 10, "web", "failed"),
    tried(500, 510, "web", "failed"),
    tried(1_500, 1_510, "web", "failed"),
    tried(1_520, 1_530, "api", "succeeded"),
  ];
  const waits = waitsOf(steps, { from: began, to: began + 2_000, now: began + 2_000 });
  expect(waits.map(({ step, from, to }) => [step.subject, from - began, to - began])).toEqual([
    ["web", 1, 500],
    ["web", 500, 1_500],
    ["web", 1_500, 1_510],
    ["api", 1_520, 1_530],
  ]);
});

it("whatever ran, a loop waits for the same by SQL and in the client", () => {
  const anySpan = fc.record({
    phase: fc.constantFrom(...phases),
    subject: fc.constantFrom("a", "b", "c"),
    from: fc.integer({ min: -20, max: 120 }),
    to: fc.integer({ min: -20, max: 120 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.array(anySpan, { maxLength: 12 }), (length, spans) => {
      expect(byClient(length, spans)).toEqual(bySql(length, spans));
    }),
    { numRuns: 500 },
  );
});

it("a step that runs is waited for until now, and a cached build never", () => {
  const running = { ...stepOf({ phase: "build", subject: "web", from: 0, to: 0 }), endedAt: undefined };
  const cached = { ...stepOf({ phase: "build", subject: "api", from: 0, to: 50 }), isCached: true };
  expect(waitsOf([running, cached], { from: began, to: began + 40, now: began + 40 })).toEqual([
    { step: running, from: began, to: began + 40 },
  ]);
});
