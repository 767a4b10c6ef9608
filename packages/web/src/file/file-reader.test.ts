import type { Operation, Session, TapedeckEvent } from "@tapedeck/client";
import { expect, it } from "vitest";
import { dataVersion, type SessionData } from "./data.ts";
import { fileReader } from "./file-reader.ts";

const kinds = ["session.started", "build.started", "log.written", "build.failed", "log.written", "build.started"];
const events = kinds.map((kind, index) => ({ kind, position: `p${index}` })) as unknown as TapedeckEvent[];
const data: SessionData = {
  version: dataVersion,
  exportedAt: "2026-11-23T10:00:00Z",
  exportedBy: "tapedeck",
  position: "p9",
  session: { session: "01A", source: "acme/alice/shop/skaffold", endReason: null } as Session,
  events,
  olderEvents: 0,
  operations: [
    { kind: "loop", outcome: "failed", startedAt: "2026-11-23T09:10:00Z", startPosition: "p3", runner: 1, loop: 2 },
    { kind: "build", outcome: "failed", startedAt: "2026-11-23T09:00:00Z", startPosition: "p1", runner: 1, loop: 1 },
  ] as Operation[],
  olderOperations: 0,
  statePoints: [
    { position: "p0", state: 0 },
    { position: "p3", state: 1 },
  ],
  states: [{ at: "p0" }, { at: "p3" }],
  comparisons: {},
};
const reader = fileReader(data);
const positions = async (options: Parameters<typeof reader.events>[0]) =>
  (await Array.fromAsync(reader.events(options))).map(({ position }) => position);

it("gives events as a gateway does: after a position, up to one, of some kinds", async () => {
  expect(await positions({ after: "start" })).toEqual(["p0", "p1", "p2", "p3", "p4", "p5"]);
  expect(await positions({ after: "p1", until: "p3" })).toEqual(["p2", "p3"]);
  expect(await positions({ kinds: ["log.written", "*.failed"], after: "p2", until: "now" })).toEqual(["p3", "p4"]);
  expect(await positions({ after: "now" })).toEqual([]);
});

it("gives operations by kind, outcome, time, loop and as of a position", async () => {
  const found = async (options: Parameters<typeof reader.operations>[0]) =>
    (await Array.fromAsync(reader.operations(options))).map(({ kind }) => kind);
  expect(await found({})).toEqual(["loop", "build"]);
  expect(await found({ kinds: ["loop"] })).toEqual(["loop"]);
  expect([await found({ runner: 1, loop: 2 }), await found({ runner: 2 })]).toEqual([["loop"], []]);
  expect([await found({ at: "p2" }), await found({ at: "p3" })]).toEqual([["build"], ["loop", "build"]]);
  expect(await found({ from: "2026-11-23T09:00:00Z", to: new Date("2026-11-23T09:10:00Z") })).toEqual(["build"]);
});

it("gives the state of a moment, of text after it too, and else says of which earlier one it is", async () => {
  const at = async (position: string) => {
    const { at, state } = await reader.state("", { at: position });
    return [at, state.at];
  };
  expect(await at("p0")).toEqual(["p0", "p0"]);
  expect(await at("p1")).toEqual(["p0", "p0"]);
  expect(await at("p3")).toEqual(["p3", "p3"]);
  expect(await at("p4")).toEqual(["p4", "p3"]);
  expect(await at("p5")).toEqual(["p3", "p3"]);
  await expect(at("a")).rejects.toThrow("not in this file");
  await expect(reader.compare("01A.1.1")).rejects.toThrow("not in the file");
});
