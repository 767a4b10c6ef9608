import { Cause, Operation, Session } from "@tapedeck/proto/tapedeck/v1/lists";
import type { EventJson } from "@tapedeck/shared/events/json";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { expect, it } from "vitest";
import type { QueryClient } from "../../../query-client.ts";
import type { EventsPage, EventsPageRequest } from "../events-page.ts";
import { readSummary } from "./read-summary.ts";
import { unreadFiles } from "./value-differences.ts";

// A comparison reads a limited number of what a side has, and says so.

const at = (sequence: number) => eventPosition("t", sequence);

const event = (kind: string, sequence: number): EventJson => ({
  position: at(sequence),
  recordedAt: "2026-01-01T00:00:00Z",
  id: `s.v1.${sequence}`,
  source: "default/alice/shop/skaffold",
  session: "s",
  channel: "v1",
  ordinal: sequence,
  frameOrdinal: 1,
  part: 0,
  kind,
  summary: "",
  detail: { text: "nothing of the kind\n" },
});

const failedLoop = Operation.fromPartial({
  kind: "loop",
  session: "s",
  runner: 1,
  loop: 1,
  outcome: "failed",
  start_position: at(1),
  end_position: at(900),
  cause: Cause.fromPartial({ text: "undefined: x", reason: "compile error", phase: "build", subject: "web" }),
});
const failedBuild = Operation.fromPartial({ ...failedLoop, kind: "build", subject: "web" });

type Recorded = { readonly nextPage?: string; readonly events: (request: EventsPageRequest) => EventsPage };

/** What the summary of a loop says that it did not read. */
const unreadOf = async (recorded: Recorded) => (await summaryOf(recorded)).unread;

async function summaryOf({ nextPage = "", events }: Recorded, unit = failedLoop) {
  const session = Session.fromPartial({ source: "default/alice/shop/skaffold", session: "s", start_position: at(1) });
  const query = {
    listOperations: async () => ({ items: [failedBuild], next_page: nextPage, position: at(999) }),
  } as unknown as QueryClient;
  const state = { upstream: "skaffold" as const, rows: [], done: () => {} };
  const deps = { query, readState: async () => state as never, events: async (one: EventsPageRequest) => events(one) };
  const context = { workspace: "default", at: at(999), signal: new AbortController().signal };
  return readSummary(deps, context as never, { session, unit, position: at(900) }, "loop 1");
}

const none = (): EventsPage => ({ items: [], position: at(999) });
const hasKind = ({ filter }: EventsPageRequest, kind: string) => JSON.stringify(filter).includes(kind);
const many = (kind: string, count: number) => Array.from({ length: count }, (_, index) => event(kind, index + 2));

it("says nothing where all was read", async () => {
  expect(await unreadOf({ events: none })).toEqual([]);
  const exactly = (request: EventsPageRequest) =>
    request.last === undefined || !hasKind(request, "resource")
      ? none()
      : { ...none(), items: many("resource.updated", 300).slice(-request.last) };
  expect(await unreadOf({ events: exactly })).toEqual([]);
});

it("says that a side has more steps than are compared", async () => {
  expect(await unreadOf({ nextPage: "2", events: none })).toEqual(["Only its newest 500 steps were compared."]);
});

it.each([
  ["in number", (last: number) => ({ ...none(), items: many("resource.updated", 400).slice(-last) })],
  ["in bytes", () => ({ ...none(), items: many("resource.updated", 3), isCut: true })],
])("says that a side has more events than are compared, %s", async (_, newest) => {
  const events = (request: EventsPageRequest) =>
    request.last !== undefined && hasKind(request, "resource") ? newest(request.last) : none();
  const sentence = "Only the newest of its failures and reports of resources were compared.";
  expect(await unreadOf({ events })).toEqual([sentence]);
});

it("says that the cause was searched for in a part of the output", async () => {
  const events = (request: EventsPageRequest) =>
    request.last !== undefined && hasKind(request, "log.written")
      ? { ...none(), items: many("log.written", 400).slice(-request.last) }
      : none();
  expect(await unreadOf({ events })).toEqual([
    "The cause was searched for in a part of its output, so the lines around it may be missing.",
  ]);
});

it("says that earlier lists of changed files were not compared, if they are of the time between the sides", async () => {
  const time = (second: number) => ({ seconds: BigInt(second), nanos: 0 });
  const lists = (count: number) => (request: EventsPageRequest) => {
    if (request.last === undefined || !hasKind(request, "session.labelled")) return none();
    const items = Array.from({ length: count }, (_, index) => ({
      ...event("session.labelled", index + 2),
      occurredAt: new Date((count - 200 + index) * 1_000).toISOString(),
    }));
    return { ...none(), items: items.slice(-request.last) };
  };
  // The newest list is of second 199, the hundredth before it of second 100.
  const [failed, good, before] = await Promise.all(
    [200, 150, 50].map((second) => summaryOf({ events: lists(200) }, { ...failedLoop, started_at: time(second) })),
  );
  const few = await summaryOf({ events: lists(100) }, { ...failedLoop, started_at: time(200) });
  if (failed === undefined || good === undefined || before === undefined) throw new Error("no summary");
  const sentence = "Only its newest lists of changed files were compared.";
  expect(unreadFiles(failed, good)).toEqual([]);
  expect(unreadFiles(failed, before)).toEqual([sentence]);
  expect(unreadFiles(failed, { ...good, session: "other" })).toEqual([sentence]);
  expect(unreadFiles(few, before)).toEqual([]);
  expect(unreadFiles(failed, undefined)).toEqual([]);
});
