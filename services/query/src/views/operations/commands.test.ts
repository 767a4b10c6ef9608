import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { OperationRow } from "../../db/schema.ts";
import { type Scenario, scenario } from "../../testing/scenario.ts";
import { ulid, type VagrantSession, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";
import { rowsAfter } from "./rows.ts";

type Expected = Partial<OperationRow> & Pick<OperationRow, "kind">;

const one = ulid(1);
const two = ulid(2);

const cases: {
  readonly title: string;
  readonly given: (server: VagrantSession, script: Scenario) => void;
  readonly expected: readonly Expected[];
}[] = [
  {
    title: "a job and its command run from when a runner took it, not from when it was queued",
    given: (server) => {
      server.queued(one, "up", { at: 0 });
      server.assigned(one, { at: 100 });
      server.started(one, { at: 200 });
      server.finished(one, undefined, { at: 3_200 });
    },
    expected: [
      { kind: "job", subject: one, instance: "", outcome: "succeeded", duration_ms: 3_000, exit_code: null },
      { kind: "command", subject: "up", instance: one, outcome: "succeeded", duration_ms: 3_000, exit_code: 0 },
    ],
  },
  {
    title: "a command that failed makes its job a failed one, whatever the server calls it",
    given: (server) => {
      server.queued(one, "up");
      server.started(one, { at: 0 });
      server.finished(one, 127, { at: 10 });
    },
    expected: [
      { kind: "job", outcome: "failed", error_code: "127" },
      { kind: "command", outcome: "failed", error_code: "127", error: `${one} did not work`, exit_code: 127 },
    ],
  },
  {
    title: "code 0 of a command that failed says nothing",
    given: (server) => {
      server.queued(one, "up");
      server.started(one);
      server.finished(one, 0);
    },
    expected: [{ kind: "job" }, { kind: "command", outcome: "failed", exit_code: null }],
  },
  {
    title: "two commands of one name at the same time are two",
    given: (server) => {
      for (const job of [one, two]) server.queued(job, "up");
      server.started(one, { at: 0 });
      server.started(two, { at: 10 });
      server.finished(one, 1, { at: 100 });
      server.finished(two, undefined, { at: 200 });
    },
    expected: [
      { kind: "job", subject: one, outcome: "failed" },
      { kind: "command", subject: "up", instance: one, outcome: "failed", duration_ms: 100 },
      { kind: "job", subject: two, outcome: "succeeded" },
      { kind: "command", subject: "up", instance: two, outcome: "succeeded", duration_ms: 190 },
    ],
  },
  {
    title: "other jobs have no command",
    given: (server) => {
      server.queued(one, "");
      server.started(one);
      server.finished(one);
    },
    expected: [{ kind: "job", outcome: "succeeded" }],
  },
  {
    title: "a job that was canceled before it began has no duration",
    given: (server) => {
      server.queued(one, "up", { at: 0 });
      server.canceled(one, { at: 100 });
    },
    expected: [{ kind: "job", outcome: "canceled", started_at: null, duration_ms: null, error_code: "1" }],
  },
  {
    title: "a command that goes with its job ends as that one does",
    given: (server) => {
      for (const job of [one, two]) server.queued(job, "up");
      server.started(one, { at: 0 });
      server.started(two, { at: 0 });
      server.canceled(one, { at: 100 });
      server.failed(two, { at: 200 });
    },
    expected: [
      { kind: "job", subject: one, outcome: "canceled", duration_ms: 100 },
      { kind: "command", instance: one, outcome: "canceled", duration_ms: 100, error_code: "1", exit_code: null },
      { kind: "job", subject: two, outcome: "failed", duration_ms: 200 },
      { kind: "command", instance: two, outcome: "failed", duration_ms: 200, error_code: "2", exit_code: null },
    ],
  },
  {
    title: "a job that was lost, and its command, ended nobody knows when and how",
    given: (server) => {
      server.queued(one, "up");
      server.started(one, { at: 0 });
      server.lost(one, { at: 100 });
      server.queued(two, "up");
      server.lost(two, { at: 200 });
    },
    expected: [
      { kind: "job", subject: one, outcome: "unknown", duration_ms: null, ended_at: null, end_position: offsetOf(4) },
      {
        kind: "command",
        instance: one,
        outcome: "unknown",
        duration_ms: null,
        ended_at: null,
        end_position: offsetOf(5),
      },
      { kind: "job", subject: two, outcome: "unknown", started_at: null, duration_ms: null, end_position: offsetOf(7) },
    ],
  },
  {
    title: "a command of which nobody says how it ended, but when, has a duration",
    given: (server, { add }) => {
      server.queued(one, "up");
      server.started(one, { at: 0 });
      const outcome = Outcome.OUTCOME_UNKNOWN;
      const operation = { kind: "command", subject: "up", instance: one };
      add({ session: "S", channel: "jobs", kind: "command.finished", subject: one, outcome, operation }, 100);
    },
    expected: [{ kind: "job" }, { kind: "command", outcome: "unknown", duration_ms: 100 }],
  },
  {
    title: "a command that is over is not lost any more",
    given: (server) => {
      server.queued(one, "up");
      server.started(one, { at: 0 });
      server.finished(one, undefined, { at: 10 });
      server.lost(one, { at: 100 });
    },
    expected: [
      { kind: "job", outcome: "succeeded", duration_ms: 10 },
      { kind: "command", outcome: "succeeded", duration_ms: 10 },
    ],
  },
  {
    title: "jobs and commands that run when their session ends are unknown",
    given: (server, script) => {
      server.queued(one, "up");
      server.started(one, { at: 0 });
      const another = vagrantSession("other", script);
      another.queued(two, "up");
      another.started(two);
      server.ended(100);
    },
    expected: [
      { kind: "job", subject: one, outcome: "unknown", ended_at: null },
      { kind: "command", instance: one, outcome: "unknown", ended_at: null },
      { kind: "job", subject: two, outcome: null },
      { kind: "command", instance: two, outcome: null },
    ],
  },
];

it.each(cases)("$title", ({ given, expected }) => {
  const rows = rowsAfter([], reported(given)).sort(byPosition);
  expect(rows).toMatchObject(expected);
  expect(rows).toHaveLength(expected.length);
});

it.each(cases)("$title, also one event at a time", ({ given }) => {
  const rows = new Map<string, OperationRow>();
  for (const recorded of reported(given))
    for (const row of rowsAfter([...rows.values()], [recorded])) rows.set(row.id, row);
  expect([...rows.values()].toSorted(byPosition)).toEqual(rowsAfter([], reported(given)).sort(byPosition));
});

function byPosition(a: OperationRow, b: OperationRow): number {
  return a.start_position - b.start_position;
}

function reported(given: (server: VagrantSession, script: Scenario) => void) {
  const script = scenario(vagrantShop);
  given(vagrantSession("S", script), script);
  return script.events.map((event, index) => ({
    event,
    offset: offsetOf(index + 1),
    recordedAt: new Date(0),
    subject: "",
  }));
}
