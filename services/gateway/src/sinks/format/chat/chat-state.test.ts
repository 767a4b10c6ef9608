import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { sourceName } from "@tapedeck/shared/source";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { type ChatMessage, type ChatState, dueAt, flushed, foldChat, unknownState } from "./chat-state.ts";

const source = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });

const intervalMs = 60_000;

/** Plays events of a source at seconds, and collects what is sent: "at type +more". */
function play(events: readonly (readonly [seconds: number, kind: string, more?: Partial<Event>])[]) {
  let state: ChatState = unknownState;
  const sent: string[] = [];
  const messages: ChatMessage[] = [];
  const send = (at: number, message: ChatMessage | undefined) => {
    if (message === undefined) return;
    sent.push(`${at / 1_000} ${message.type}${message.more > 0 ? ` +${message.more}` : ""}`);
    messages.push(message);
  };
  const flushUntil = (at: number) => {
    for (let due = dueAt(state, intervalMs); due !== undefined && due <= at; due = dueAt(state, intervalMs)) {
      const next = flushed(state, intervalMs);
      state = next.state;
      send(due, next.message);
    }
  };
  for (const [index, [seconds, kind, more]] of events.entries()) {
    const at = seconds * 1_000;
    flushUntil(at);
    const [noun = ""] = kind.split(".");
    const operation = { kind: noun, subject: "", runner: 1, loop: noun === "loop" ? index + 1 : 0 };
    const event = testEvent(source, index + 1, { kind, operation, occurred_at: timestampOfMs(at), ...more });
    const next = foldChat(state, { event, position: `p${index}`, at, intervalMs });
    state = next.state;
    send(at, next.message);
  }
  flushUntil(Number.POSITIVE_INFINITY);
  return { sent, messages, state };
}

const command = (outcome: Outcome): Partial<Event> => ({ outcome });
const ended = (exit_code: number, session = "s"): Partial<Event> => ({
  session,
  channel: "tapedeck",
  detail: { $case: "session_detail", value: { exit_code } as never },
});

it("a failure and that it is good again are one message each, with how long it was not", () => {
  const { sent, messages } = play([
    [0, "loop.succeeded"],
    [100, "loop.failed"],
    [400, "loop.succeeded"],
    [500, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["100 failed", "400 good"]);
  expect(messages).toMatchObject([
    { id: "p1", what: "loop 2", path: "/loops/s.1.2" },
    { id: "p2", redMs: 300_000 },
  ]);
});

it("a source has one message a minute at most, and the next one says how many failures had none", () => {
  const failures = Array.from({ length: 25 }, (_, index) => [index * 10, "loop.failed"] as const);
  const { sent } = play(failures);
  expect(sent).toEqual(["0 failed", "60 failed +5", "120 failed +5", "180 failed +5", "240 failed +5"]);
});

it("a clock of the log that is set back an hour keeps back no message", () => {
  const { sent } = play([
    [3_600, "loop.failed"],
    [600, "loop.failed"],
    [1_200, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["3600 failed", "600 failed", "1200 good"]);
});

it("a source that is good again within the minute is reported at its end, with the failures in between", () => {
  const { sent, messages } = play([
    [0, "loop.failed"],
    [10, "loop.failed"],
    [20, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["0 failed", "60 good +1"]);
  expect(messages[1]).toMatchObject({ id: "p2", redMs: 20_000 });
});

it("a source that fails again before its turn is not called good, and counts as failing since then", () => {
  const { sent, messages } = play([
    [0, "loop.failed"],
    [20, "loop.succeeded"],
    [40, "loop.failed"],
    [200, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["0 failed", "200 good +1"]);
  expect(messages[1]).toMatchObject({ redMs: 160_000 });
});

/** In 2026, in seconds. */
const now = 1_780_000_000;
const occurredAt = (seconds: number): Partial<Event> => ({ occurred_at: timestampOfMs(seconds * 1_000) });

it("a source that is recorded late and all at once is good again after its last failures, and counts these", () => {
  const rounds = Array.from({ length: 20 }, (_, round) => {
    const hour = now - 72_000 + round * 3_600;
    return [
      [now + round, "loop.failed", occurredAt(hour)],
      [now + round, "loop.failed", occurredAt(hour + 100)],
      [now + round, "loop.succeeded", occurredAt(hour + 300)],
    ] as const;
  }).flat();
  const { sent, messages } = play(rounds);
  expect(sent).toEqual([`${now} failed`, `${now + 60} good +2`]);
  expect(messages[1]).toMatchObject({ redMs: 300_000 });
});

it("an event that is more than a day old when it is recorded is not reported, and repairs nothing", () => {
  const { sent } = play([
    [now, "loop.failed", occurredAt(now - 100_000)],
    [now + 1, "loop.failed", occurredAt(now)],
    [now + 100, "loop.succeeded", occurredAt(now - 90_000)],
    [now + 200, "loop.succeeded", occurredAt(now + 190)],
    // Its clock was never set.
    [now + 300, "loop.failed", occurredAt(100)],
  ]);
  expect(sent).toEqual([`${now + 1} failed`, `${now + 200} good`, `${now + 300} failed`]);
});

it("a failure within a minute of being good is reported at its end, unless it is good by then", () => {
  const start = [
    [0, "loop.failed"],
    [100, "loop.succeeded"],
    [110, "loop.failed"],
    [120, "loop.failed"],
  ] as const;
  expect(play(start).sent).toEqual(["0 failed", "100 good", "160 failed +1"]);
  expect(play([...start, [130, "loop.succeeded"], [300, "loop.failed"]]).sent).toEqual([
    ...["0 failed", "100 good"],
    "300 failed +2",
  ]);
});

it("a loop that is reported as failed once more for each retry of a sync has failed once", () => {
  const operation = { kind: "loop", subject: "", runner: 1, loop: 23 };
  const { sent, messages } = play([
    ...[0, 1, 2, 90].map((seconds) => [seconds, "loop.failed", { operation }] as const),
    [100, "loop.failed"],
    [200, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["0 failed", "100 failed", "200 good"]);
  expect(messages[0]?.what).toBe("loop 23");
});

it("a command of Vagrant is judged by its outcome, and one that was canceled decides nothing", () => {
  const { sent } = play([
    [0, "command.finished", command(Outcome.OUTCOME_FAILED)],
    [100, "command.finished", command(Outcome.OUTCOME_CANCELED)],
    [200, "command.finished", command(Outcome.OUTCOME_SUCCEEDED)],
  ]);
  expect(sent).toEqual(["0 failed", "200 good"]);
});

it("a command that failed is good again when the same command succeeds, whatever else does", () => {
  const named = (command: string, outcome: Outcome): Partial<Event> => ({
    outcome,
    detail: { $case: "command", value: { command } as never },
  });
  const { sent } = play([
    [0, "command.finished", named("up", Outcome.OUTCOME_FAILED)],
    [100, "command.finished", named("destroy", Outcome.OUTCOME_SUCCEEDED)],
    [200, "command.finished", named("provision", Outcome.OUTCOME_FAILED)],
    [300, "command.finished", named("up", Outcome.OUTCOME_SUCCEEDED)],
    [400, "command.finished", named("provision", Outcome.OUTCOME_SUCCEEDED)],
    [500, "command.finished", named("up", Outcome.OUTCOME_SUCCEEDED)],
  ]);
  expect(sent).toEqual(["0 failed", "200 failed", "400 good"]);
});

it.each([
  ["its name", { name: "web" }, "pod web"],
  ["its apps, where its name is its id", { name: "u-1", apps: ["nginx", "log"] }, "pod nginx log"],
  ["its id, where nothing else is known", { name: "u-1", apps: [] }, "pod u-1"],
])("a pod is called by %s", (_, detail, what) => {
  const value = { pod: "u-1", apps: [], ...detail } as never;
  const { messages } = play([
    [0, "pod.exited", { subject: "u-1", outcome: Outcome.OUTCOME_FAILED, detail: { $case: "pod", value } }],
  ]);
  expect(messages[0]?.what).toBe(what);
});

it("a pod that failed is a message, and nothing says that its host is good again", () => {
  const pod = { outcome: Outcome.OUTCOME_FAILED };
  const { sent } = play([
    [0, "pod.exited", pod],
    [10, "pod.exited", pod],
    [100, "pod.exited", pod],
    [200, "pod.exited", { outcome: Outcome.OUTCOME_UNKNOWN }],
  ]);
  expect(sent).toEqual(["0 failed", "100 failed +1"]);
});

it("a session without loops fails once, and is good again when a later one ends with 0 and has done something", () => {
  const { sent, messages } = play([
    [0, "build.failed"],
    [1, "deploy.failed"],
    [2, "session.ended", ended(1)],
    [100, "session.ended", ended(0, "idle")],
    [200, "build.succeeded", { session: "next" }],
    [210, "session.ended", ended(0, "next")],
  ]);
  expect(sent).toEqual(["0 failed", "210 good"]);
  expect(messages[0]).toMatchObject({ what: "build", path: "/sessions/s?at=p0" });
});

it("steps of loops decide nothing: their loop does", () => {
  const inLoop = { operation: { kind: "build", subject: "web", runner: 1, loop: 3 } };
  expect(play([[0, "build.failed", inLoop]]).sent).toEqual([]);
});

it("an erased source is forgotten", () => {
  const { sent, state } = play([
    [0, "loop.failed"],
    [10, "source.erased"],
    [20, "loop.succeeded"],
  ]);
  expect(sent).toEqual(["0 failed"]);
  expect(state).toEqual(unknownState);
});
