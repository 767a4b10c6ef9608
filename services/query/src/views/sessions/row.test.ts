import { TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { SessionRow } from "../../db/schema.ts";
import { type Scenario, scenario } from "../../testing/scenario.ts";
import { rowAfter } from "./row.ts";

function after(given: (script: Scenario) => void): SessionRow | undefined {
  const script = scenario();
  script.session("A").started();
  given(script);
  let row: SessionRow | undefined;
  for (const [index, event] of script.events.entries()) {
    row = rowAfter(row, { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" });
  }
  return row;
}

it("ends at an observed time, and has no end time when the end was not observed", () => {
  expect(after((script) => script.session("A").ended("process ended", 5_000))).toMatchObject({
    ended_at: "2026-11-20T09:00:05.000000Z",
    end_reason: "process ended",
    end_position: offsetOf(2),
  });
  expect(after((script) => script.session("A").lost("replaced"))).toMatchObject({
    ended_at: null,
    end_reason: "replaced",
    end_position: offsetOf(2),
  });
  const unseen = { kind: "session.ended", session: "A", time_source: TimeSource.TIME_SOURCE_INTERVAL };
  expect(after((script) => void script.add(unseen))).toMatchObject({ ended_at: null, end_position: offsetOf(2) });
});

it("resumes when its tap is back, and an open gap counts until it is filled", () => {
  const gap = (kind: string) => ({ kind, session: "A", detail: { $case: "gap" as const, value: { channel: "" } } });
  const lost = (script: Scenario) => {
    script.add(gap("session.gap"));
    script.session("A").lost("nothing more was received from it");
  };
  expect(after(lost)).toMatchObject({ gaps: 1, end_position: offsetOf(3) });
  const back = (script: Scenario) => {
    lost(script);
    script.add({ kind: "upstream.restored", session: "A" });
    script.add(gap("session.gap_filled"));
  };
  expect(after(back)).toMatchObject({ gaps: 0, end_position: null, end_reason: "" });
});

it("has the exit code of its command, but not that of one which only started its process", () => {
  const ended = (wrapper: boolean) => (script: Scenario) => {
    const command_run = { command_line: "make dev", exit_code: 3, ...(wrapper && { wrapper }) };
    script.add({
      kind: "session.ended",
      session: "A",
      detail: { $case: "session_detail" as const, value: { reason: "process ended", command_run } },
    });
  };
  expect(after(ended(false))).toMatchObject({ exit_code: 3, command_line: "make dev" });
  expect(after(ended(true))).toMatchObject({ exit_code: null, command_line: "make dev" });
});
