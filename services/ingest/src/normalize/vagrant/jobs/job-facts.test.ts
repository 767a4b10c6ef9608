import { LocalizedMessage } from "@tapedeck/proto/google/rpc/error_details";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { type ComparedOutcome, fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { factsOf, type JobFields, job, type Play, play, startedFacts, succeededFacts } from "../testing/jobs-play.ts";

/** Observations of one job, one second apart, and the outcomes of each. */
type Life = readonly (readonly [JobFields, readonly ComparedOutcome[]])[];

const id = "01M7WSXR6NFM73VJ0F879K4ZNP";

const up = { command: "up" } as const;
const queued = { ...up, state: "QUEUED" } as const;
const waiting = { ...up, state: "WAITING", assigned: 2_000 } as const;
const running = { ...waiting, state: "RUNNING", acked: 3_000 } as const;
const success = { ...running, state: "SUCCESS", completed: 9_000 } as const;
const canceledError = { code: 1, message: "canceled" };

const lives: Readonly<Record<string, Life>> = {
  "one step after the other": [
    [queued, [frame(fact("job.queued", id))]],
    [waiting, [frame(fact("job.assigned", id, { attempt: 1 }))]],
    [running, [frame(fact("job.started", id), fact("command.started", id, { command: "up" }))]],
    [{ ...success, result: { run: { run_result: true } } }, [frame(...succeededFacts(id))]],
  ],
  "all at once, from its times": [
    [{ ...success, result: { run: { run_result: true } } }, [frame(...startedFacts(id), ...succeededFacts(id))]],
  ],
  "another operation than a command": [
    [
      { ...running, command: undefined },
      [frame(fact("job.queued", id), fact("job.assigned", id, { attempt: 1 }), fact("job.started", id))],
    ],
    [
      { ...success, command: undefined, result: { init: {} } },
      [frame(fact("job.succeeded", id, { outcome: Outcome.OUTCOME_SUCCEEDED }))],
    ],
  ],
  "a command that failed, which is a success of its job": [
    [
      { ...success, result: { run: { exit_code: 3 } } },
      [
        frame(
          ...startedFacts(id),
          fact("job.succeeded", id, { outcome: Outcome.OUTCOME_FAILED }),
          fact("command.finished", id, { outcome: Outcome.OUTCOME_FAILED, command: "up" }),
        ),
      ],
    ],
  ],
  "an empty result, which is a failure": [
    [
      { ...success, result: { run: {} } },
      [
        frame(
          ...startedFacts(id),
          fact("job.succeeded", id, { outcome: Outcome.OUTCOME_FAILED }),
          fact("command.finished", id, { outcome: Outcome.OUTCOME_FAILED, command: "up" }),
        ),
      ],
    ],
  ],
  "a success without any result": [
    [
      success,
      [
        frame(
          ...startedFacts(id),
          fact("job.succeeded", id, { outcome: Outcome.OUTCOME_UNKNOWN }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
        ),
      ],
    ],
  ],
  "canceled while it ran: its command fails": [
    [running, [frame(...startedFacts(id))]],
    [{ ...running, canceled: 5_000 }, [frame(fact("job.cancel_requested", id))]],
    [
      { ...success, canceled: 5_000, result: { run: { run_error: canceledError } } },
      [
        frame(
          fact("job.succeeded", id, { outcome: Outcome.OUTCOME_CANCELED }),
          fact("command.finished", id, { outcome: Outcome.OUTCOME_CANCELED, command: "up" }),
        ),
      ],
    ],
  ],
  "canceled while it ran, and none the less done": [
    [
      { ...success, canceled: 5_000, result: { run: { run_result: true } } },
      [frame(...startedFacts(id), fact("job.cancel_requested", id), ...succeededFacts(id))],
    ],
  ],
  "failed: its runner could not even begin": [
    [
      { ...running, state: "ERROR", completed: 9_000, error: { code: 9, message: "no basis" } },
      [
        frame(
          ...startedFacts(id),
          fact("job.failed", id, { outcome: Outcome.OUTCOME_FAILED }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_FAILED, command: "up" }),
        ),
      ],
    ],
  ],
  "failed, canceled before the command began": [
    [
      {
        ...running,
        state: "ERROR",
        completed: 9_000,
        canceled: 4_000,
        error: { code: 2, message: "context canceled" },
      },
      [
        frame(
          ...startedFacts(id),
          fact("job.cancel_requested", id),
          fact("job.failed", id, { outcome: Outcome.OUTCOME_FAILED }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_FAILED, command: "up" }),
        ),
      ],
    ],
  ],
  "canceled in the queue": [
    [queued, [frame(fact("job.queued", id))]],
    [
      { ...queued, state: "ERROR", canceled: 5_000, error: canceledError },
      [
        frame(
          fact("job.cancel_requested", id),
          fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "requested" }),
        ),
      ],
    ],
  ],
  "expired in the queue": [
    [{ ...queued, expires: 4_000 }, [frame(fact("job.queued", id))]],
    [
      { ...queued, state: "ERROR", expires: 4_000, canceled: 4_000, error: canceledError },
      [frame(fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "expired" }))],
    ],
  ],
  "canceled before it expired": [
    [
      { ...queued, state: "ERROR", expires: 4_000, canceled: 3_999, error: canceledError },
      [
        frame(
          fact("job.queued", id),
          fact("job.cancel_requested", id),
          fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "requested" }),
        ),
      ],
    ],
  ],
  "expired while it waited for its runner, which took it after that": [
    [
      { ...waiting, expires: 2_500, canceled: 2_500 },
      [frame(fact("job.queued", id), fact("job.assigned", id, { attempt: 1 }), fact("job.cancel_requested", id))],
    ],
    [
      { ...running, expires: 2_500, canceled: 2_500 },
      [frame(fact("job.started", id), fact("command.started", id, { command: "up" }))],
    ],
  ],
  "the same seen late: in the order of the times": [
    [
      { ...running, expires: 2_500, canceled: 2_500 },
      [
        frame(
          fact("job.queued", id),
          fact("job.assigned", id, { attempt: 1 }),
          fact("job.cancel_requested", id),
          fact("job.started", id),
          fact("command.started", id, { command: "up" }),
        ),
      ],
    ],
  ],
  "its runner was lost": [
    [running, [frame(...startedFacts(id))]],
    [
      { ...running, state: "ERROR", canceled: 9_000, error: canceledError },
      [
        frame(
          fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "heartbeat" }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_CANCELED, command: "up" }),
        ),
      ],
    ],
  ],
  "its runner was lost after it had been asked to end": [
    [{ ...running, canceled: 5_000 }, [frame(...startedFacts(id), fact("job.cancel_requested", id))]],
    [
      { ...running, state: "ERROR", canceled: 5_000, error: canceledError },
      [
        frame(
          fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "requested" }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_CANCELED, command: "up" }),
        ),
      ],
    ],
  ],
  "refused by its runner, and taken by the next": [
    [waiting, [frame(fact("job.queued", id), fact("job.assigned", id, { attempt: 1 }))]],
    [{ ...queued, assigned: 2_000 }, [frame(fact("job.requeued", id, { attempt: 1 }))]],
    [waiting, [frame(fact("job.assigned", id, { attempt: 2 }))]],
    [{ ...queued, assigned: 2_000 }, [frame(fact("job.requeued", id, { attempt: 2 }))]],
    [{ ...queued, assigned: 2_000 }, []],
    [
      running,
      [
        frame(
          fact("job.assigned", id, { attempt: 3 }),
          fact("job.started", id),
          fact("command.started", id, { command: "up" }),
        ),
      ],
    ],
  ],
  "refused before it was seen": [
    [
      { ...queued, assigned: 2_000 },
      [
        frame(
          fact("job.queued", id),
          fact("job.assigned", id, { attempt: 1 }),
          fact("job.requeued", id, { attempt: 1 }),
        ),
      ],
    ],
    [
      { ...queued, state: "ERROR", assigned: 2_000, canceled: 5_000, error: canceledError },
      [
        frame(
          fact("job.cancel_requested", id),
          fact("job.canceled", id, { outcome: Outcome.OUTCOME_CANCELED, reason: "requested" }),
        ),
      ],
    ],
  ],
  "an older answer than the one before": [
    [waiting, [frame(fact("job.queued", id), fact("job.assigned", id, { attempt: 1 }))]],
    [queued, []],
    [running, [frame(fact("job.started", id), fact("command.started", id, { command: "up" }))]],
    [waiting, []],
    [{ ...queued, assigned: 2_000 }, []],
    [{ ...success, result: { run: { run_result: true } } }, [frame(...succeededFacts(id))]],
    [{ ...running, canceled: 8_000 }, []],
  ],
  "a state that is not known": [
    [{ ...queued, more: { state: 42 as never } }, [frame(fact("job.queued", id))]],
    [
      { ...running, more: { state: 42 as never } },
      [
        frame(
          fact("job.assigned", id, { attempt: 1 }),
          fact("job.started", id),
          fact("command.started", id, { command: "up" }),
        ),
      ],
    ],
    [{ ...success, result: { run: { run_result: true } } }, [frame(...succeededFacts(id))]],
  ],
  "states without their times": [
    [
      { ...queued, state: "RUNNING" },
      [frame(fact("job.queued", id), fact("job.started", id), fact("command.started", id, { command: "up" }))],
    ],
    [
      { ...queued, state: "SUCCESS" },
      [
        frame(
          fact("job.succeeded", id, { outcome: Outcome.OUTCOME_UNKNOWN }),
          fact("command.finished", id, { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
        ),
      ],
    ],
  ],
};

function live(life: Life): Play {
  const harness = play();
  for (const [index, [observation]] of life.entries()) harness.list((index + 1) * 1_000, job(id, observation));
  return harness;
}

describe("a job", () => {
  it.each(Object.entries(lives))("%s", (_, life) => {
    const harness = play();
    expect(life.map(([observation], index) => harness.list((index + 1) * 1_000, job(id, observation)))).toEqual(
      life.map(([, outcomes]) => outcomes),
    );
    const last = life.at(-1)?.[0] ?? queued;
    expect(harness.list(60_000, job(id, last))).toEqual([]);
  });

  it("has the server's own times, and else that of the observation", () => {
    const { record } = live([
      [waiting, []],
      [{ ...queued, assigned: 2_000 }, []],
      [{ ...running, canceled: 3_500 }, []],
      [{ ...success, canceled: 3_500 }, []],
    ]);
    const times = factsOf(record).map(({ kind, occurredAt }) => [kind, occurredAt && msOfTimestamp(occurredAt)]);
    expect(times).toEqual([
      ["job.queued", 1_000],
      ["job.assigned", 2_000],
      ["job.requeued", undefined],
      ["job.assigned", undefined],
      ["job.started", 3_000],
      ["command.started", 3_000],
      ["job.cancel_requested", 3_500],
      ["job.succeeded", 9_000],
      ["command.finished", 9_000],
    ]);
  });

  it("was queued at the time of its id where no other is known", () => {
    const { record } = live([[{ ...queued, queued: undefined }, []]]);
    expect(factsOf(record)[0]?.occurredAt).toEqual({ seconds: 1_795_189_301n, nanos: 461_000_000 });
  });

  it("names what it is about, and what the user gave", () => {
    const value = { $case: "string", value: "virtualbox" } as const;
    const more: NonNullable<JobFields["more"]> = {
      operation: {
        $case: "command",
        value: {
          command: "up",
          cli_args: {
            args: ["web1"],
            flags: [
              { name: "provider", value },
              { name: "provision", value: { $case: "bool", value: true } },
              { name: "color", value: { $case: "bool", value: false } },
              { name: "bare" },
            ],
          },
        },
      },
    };
    const { record } = live([[{ ...running, expires: 7_000, more }, []]]);
    const [first, , , last] = factsOf(record);
    const args = ["web1", "--provider=virtualbox", "--provision", "--color=false", "--bare"];
    const detail = { job: id, operation: "command", command: "up", args, scope: "project", scope_id: "p1" };
    expect(first?.detail?.value).toMatchObject({
      ...detail,
      scope_name: "shop",
      runner: "r1",
      state: "RUNNING",
      stale: false,
      expire_time: { seconds: 7n, nanos: 0 },
    });
    expect(last?.detail?.value).toMatchObject({ job: id, command: "up", args, scope_name: "shop" });
    expect(factsOf(record).map(({ operation }) => operation)).toEqual([
      ...Array(3).fill({ kind: "job", subject: id, runner: 0, loop: 0 }),
      { kind: "command", subject: "up", runner: 0, loop: 0, instance: id },
    ]);
    expect(factsOf(record).every(({ subject }) => subject === id)).toBe(true);
  });

  it.each([
    ["basis", { $case: "basis", value: { resource_id: "b1", name: "default" } }, ["basis", "b1", "default"]],
    ["target", { $case: "target", value: { resource_id: "t1", name: "web1" } }, ["target", "t1", "web1"]],
    ["nothing", undefined, ["", "", ""]],
  ] as const)("is about a %s", (_, scope, expected) => {
    const { record } = live([[{ ...queued, more: { scope } }, []]]);
    const { detail } = factsOf(record)[0] ?? {};
    const { scope: kind, scope_id, scope_name } = detail?.$case === "job" ? detail.value : {};
    expect([kind, scope_id, scope_name]).toEqual(expected);
  });

  it.each(["init_basis", "init_project"] as const)("of v2.4 has the operation %s", ($case) => {
    const { record } = live([[{ ...queued, more: { operation: { $case, value: {} } } }, []]]);
    expect(factsOf(record)[0]?.detail?.value).toMatchObject({ operation: $case, command: "" });
  });

  const localized = {
    type_url: "type.googleapis.com/google.rpc.LocalizedMessage",
    value: Buffer.from(LocalizedMessage.encode({ locale: "en-US", message: "The box is gone.\nTry again." }).finish()),
  };
  it.each([
    ["a code", { exit_code: 3 }, { code: "3", message: "exited with 3" }, "up failed: exited with 3"],
    ["nothing", {}, { code: "", message: "" }, "up failed"],
    [
      "an error that Ruby raised",
      { run_error: { code: 2, message: "boom" } },
      { code: "2", message: "boom" },
      "up failed: boom",
    ],
    [
      "words for people",
      { run_error: { code: 2, message: "boom", details: [localized] } },
      { code: "2", message: "The box is gone.\nTry again." },
      "up failed: The box is gone.",
    ],
    [
      "details that can't be read",
      { run_error: { code: 2, message: "boom", details: [{ ...localized, value: Buffer.from([0xff]) }] } },
      { code: "2", message: "boom" },
      "up failed: boom",
    ],
    [
      "both a code and an error",
      { exit_code: 4, run_error: { code: 2, message: "boom" } },
      { code: "4", message: "boom" },
      "up failed: boom",
    ],
  ])("whose command failed emits %s", (_, run, error, line) => {
    const facts = factsOf(live([[{ ...success, result: { run } }, []]]).record);
    const [end, command] = facts.slice(-2);
    expect(end).toMatchObject({ kind: "job.succeeded", error });
    expect(command).toMatchObject({ kind: "command.finished", error, summary: line });
    expect(command?.detail?.value).toMatchObject({ succeeded: false, canceled: false });
  });

  it("is summarized in a line for people", () => {
    const lines = (life: Life) => factsOf(live(life).record).map(({ summary }) => summary);
    expect(lines([[{ ...success, result: { run: { run_result: true } } }, []]])).toEqual([
      `up (job ${id}) was queued`,
      `up (job ${id}) was given to a runner`,
      `up (job ${id}) started`,
      "up started",
      `up (job ${id}) succeeded`,
      "up succeeded",
    ]);
    expect(lines([[{ ...success, canceled: 5_000, result: { run: {} } }, []]]).slice(-3)).toEqual([
      `up (job ${id}) is to be canceled`,
      `up (job ${id}) is over: up was canceled`,
      "up was canceled",
    ]);
    const expired = { ...queued, state: "ERROR", expires: 4_000, canceled: 4_000, error: canceledError } as const;
    expect(lines([[expired, []]]).at(-1)).toBe(`up (job ${id}) was canceled: no runner took it in time`);
    const error = { code: 9, message: "no basis\nat all" };
    expect(lines([[{ ...running, state: "ERROR", error }, []]]).slice(-2)).toEqual([
      `up (job ${id}) failed: no basis`,
      "up failed: no basis",
    ]);
  });

  it("keeps its fields short, whatever it is named", () => {
    const operation = {
      $case: "command",
      value: { command: "u".repeat(100_000), cli_args: { args: Array(10_000).fill("a") } },
    };
    const { record } = live([[{ ...running, more: { operation: operation as never } }, []]]);
    const sizes = factsOf(record).map((fact) => JSON.stringify({ ...fact, occurredAt: undefined }).length);
    expect(Math.max(...sizes)).toBeLessThan(5_000);
  });
});
