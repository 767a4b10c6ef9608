import { fileURLToPath } from "node:url";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { Event as V2Message } from "@tapedeck/proto/skaffold/v2/skaffold";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import type { Fact } from "../fact.ts";
import { normalizer } from "./normalizer.ts";

const root = fileURLToPath(new URL("../../../../../packages/fakes/recordings/skaffold", import.meta.url));
const recordings = recordingFolders(root).map(loadRecording);
const [v1, v2] = normalizer.channels;
const alone = () => v2?.without?.reader() ?? expect.fail();

// Injected events reach one of the streams only, some recordings of v1 are cut, and old versions had another v2.
const comparable = recordings.filter(
  ({ name, messages }) => messages.v2.length > 0 && /^(?:0[1-7]|1[024]|2[2-9]|30)/.test(name),
);

/** What both report: not what is printed, cached, rendered, verified or executed. */
const isOfV1 = ({ kind }: Fact) =>
  !/^(?:log|mirror|render|verify|exec)\./.test(kind) && !["build.cached", "session.terminated"].includes(kind);

const reported = (facts: readonly Fact[]) =>
  facts.filter(isOfV1).map(({ kind, subject = "", operation, outcome = 0, detail, summary }) => {
    const { runner, loop } = operation ?? {};
    const iteration = detail?.$case === "loop" ? detail.value.iteration : undefined;
    // Details of a failed loop may differ: v2 has a task's own error.
    const text = outcome === 2 ? "" : summary;
    return JSON.stringify({ runner, loop, kind, of: operation?.subject, subject, outcome, iteration, text });
  });

describe("v2 without v1", () => {
  it.each(comparable)("has the steps and loops that v1 reports: $name", ({ messages }) => {
    const [of1, of2] = [v1?.reader() ?? expect.fail(), alone()];
    const expected = reported(messages.v1.flatMap(({ bytes }) => of1.read(bytes)));
    const found = reported(messages.v2.flatMap(({ bytes }) => of2.read(bytes)));
    // Steps at the same time come in any order.
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  it("goes on after a restart as if it had read everything", () => {
    const { messages } = comparable.find(({ name }) => name === "26-dev-sync-fails") ?? expect.fail();
    const straight = alone();
    const all = messages.v2.map(({ bytes }) => ({ bytes, facts: straight.read(bytes) }));
    for (const stop of [1, 30, 60, 66, 75, 90]) {
      const resumed = alone();
      for (const { bytes, facts } of all.slice(0, stop))
        for (const [part, fact] of facts.entries()) resumed.resume(recorded(fact, part, bytes));
      expect(all.slice(stop).map(({ bytes }) => resumed.read(bytes))).toEqual(
        all.slice(stop).map(({ facts }) => facts),
      );
    }
  });

  it("gives a fact for any bytes", () => {
    const { read } = alone();
    for (const bytes of [[], [0], [255, 255, 255], [18, 5, 1]]) expect(read(Uint8Array.from(bytes))).toHaveLength(1);
  });

  it("knows by its code the phase of a loop without steps", () => {
    const { read } = alone();
    const [started, failed] = [loop("InProgress"), loop("Failed", "BUILD_UNKNOWN")].map((bytes) => read(bytes));
    expect([started, failed].map((facts) => facts?.map(({ kind }) => kind))).toEqual([
      ["loop.started"],
      ["build.failed", "loop.failed"],
    ]);
  });

  it("knows a sync whose start was not printed by its code, and gives up after four tries", () => {
    const tries = (count: number) => {
      const { read } = alone();
      const failed = Array.from({ length: count }, () => loop("Failed", "SYNC_UNKNOWN"));
      return [loop("InProgress"), ...failed, loop("Succeeded")].flatMap((bytes) => read(bytes)).map(({ kind }) => kind);
    };
    const failed = ["sync.started", "sync.failed", "loop.failed"];
    expect(tries(4)).toEqual(["loop.started", ...failed, ...failed, ...failed, ...failed, "loop.failed"]);
    expect(tries(2)).toEqual([
      "loop.started",
      ...failed,
      ...failed,
      "sync.started",
      "sync.succeeded",
      "loop.succeeded",
    ]);
  });
});

function loop(status: string, code?: "SYNC_UNKNOWN" | "BUILD_UNKNOWN"): Uint8Array {
  const taskEvent = { id: "DevLoop-1", task: "DevLoop", description: "", iteration: 1, status };
  const actionableErr = code && { errCode: code, message: "pod is gone", suggestions: [] };
  const message = V2Message.fromJSON({ taskEvent: { ...taskEvent, actionableErr } });
  return V2Message.encode(message).finish();
}

function recorded(fact: Fact, part: number, bytes: Uint8Array): Event {
  const { occurredAt: occurred_at, inferred: _, notBefore: _before, ...rest } = fact;
  const original = Event.fromPartial({ original: { bytes: Buffer.from(bytes) } }).original;
  return { ...Event.fromPartial({ part }), ...rest, occurred_at, outcome: fact.outcome ?? 0, original };
}
