import { Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { EventJson } from "@tapedeck/shared/events/json";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { expect, it } from "vitest";
import type { EventsPage, EventsPageRequest } from "../tapedeck/events-page.ts";
import { readOutput } from "./read-output.ts";
import { searchEvents } from "./search-events.ts";
import type { McpCall, Tool } from "./tool.ts";
import { waitForLoop } from "./wait-for-loop.ts";

// Pages of events end early where events are large or reading takes long. An answer says so.

const at = (sequence: number) => eventPosition("t", sequence);

const printed = (sequence: number): EventJson => ({
  position: at(sequence),
  recordedAt: "2026-01-01T00:00:00Z",
  id: `s.logs.${sequence}`,
  source: "default/alice/shop/skaffold",
  session: "s",
  channel: "logs",
  ordinal: sequence,
  frameOrdinal: 1,
  part: 0,
  kind: "log.written",
  summary: `line ${sequence}`,
  detail: { text: `line ${sequence}\n` },
});

/** An answer, and the pages that were asked for. `at` of a list is the position that it is answered with. */
async function answerOf(
  tool: Tool,
  args: object,
  pages: (request: EventsPageRequest) => EventsPage,
  failed: { readonly items: readonly Operation[]; readonly next_page: string } = { items: [], next_page: "" },
) {
  const requests: EventsPageRequest[] = [];
  const events = async (request: EventsPageRequest) => {
    if (request.after === "now") return { items: [], position: at(99) };
    requests.push(request);
    return pages(request);
  };
  const list = (item: object) => async (_context: object, request: { at?: string }) => ({
    items: [item],
    next_page: "",
    position: request.at ?? at(99),
  });
  const lists = {
    sources: list(Source.fromPartial({ source: "default/alice/shop/skaffold" })),
    sessions: list(Session.fromPartial({ source: "default/alice/shop/skaffold", session: "s", start_position: at(1) })),
    operations: async () => ({ ...failed, position: at(99) }),
  };
  const context = { workspace: "default", signal: new AbortController().signal };
  const call = { context, apis: { tapedeck: { events, lists } }, page: "", waits: () => {} } as unknown as McpCall;
  return { text: await tool.answer(args, call), requests };
}

it("output that is too large for a page is read in several", async () => {
  const { text } = await answerOf(readOutput, { session: "s" }, ({ until = "" }) =>
    until === at(99) ? { items: [printed(8)], position: until, isCut: true } : { items: [printed(7)], position: until },
  );
  expect(text).toContain("| line 7\n| line 8");
});

it("events that are too large for a page are named as older ones", async () => {
  const { text } = await answerOf(searchEvents, { session: "s" }, () => ({
    items: [printed(8)],
    position: at(99),
    isCut: true,
  }));
  expect(text).toContain(`Left out: older events. Ask with before ${at(8)}.`);
});

it("the first events after a position are not said to be all when their page ended early", async () => {
  const early = { items: [printed(8)], position: at(20), nextPage: at(20) };
  const { text } = await answerOf(searchEvents, { session: "s", after: at(2) }, () => early);
  expect(text).toContain(`Left out: later events. Ask with after ${at(20)}.`);
  expect(text).toContain(`"at":"${at(99)}"`);
  const whole = await answerOf(searchEvents, { after: at(2), limit: 1 }, () => ({
    items: early.items,
    position: at(20),
  }));
  expect(whole.text).not.toContain("Left out");
});

it("a wait as of a position claims no more than was read", async () => {
  const { text } = await answerOf(waitForLoop, { after: at(2), at: at(50) }, () => ({
    items: [],
    position: at(20),
    nextPage: at(20),
  }));
  expect(text).toContain(`Wait on with after ${at(20)}`);
});

it.each([
  ["read_output", readOutput],
  ["search_events", searchEvents],
] as const)("%s reads up to the earlier of `before` and `at`", async (_name, tool) => {
  const ends = async (before: number, moment: number) => {
    const args = { session: "s", before: at(before), at: at(moment) };
    const { requests } = await answerOf(tool, args, () => ({ items: [], position: at(10) }));
    return requests[0]?.until ?? "";
  };
  expect(await ends(30, 10)).toBe(at(10));
  expect((await ends(10, 30)) < at(10)).toBe(true);
});

it("errors that are not shown are counted, and where they are is said", async () => {
  const build = (index: number) =>
    Operation.fromPartial({ kind: "build", subject: `web${index}`, outcome: "failed", error: "no" });
  const answer = async (count: number, next_page = "") => {
    const items = Array.from({ length: count }, (_, index) => build(index));
    const none = () => ({ items: [], position: at(10) });
    return (await answerOf(readOutput, { session: "s" }, none, { items, next_page })).text;
  };
  const where = 'Call `search_events` with session s and kinds ["*.failed"].';
  expect(await answer(5)).not.toContain("older error");
  expect(await answer(6)).toContain(`Left out: 1 older error. ${where}`);
  expect(await answer(50, "next")).toContain(`Left out: 45 older errors, or more. ${where}`);
});

it("the end of a long line is had with more tokens", async () => {
  const long = { ...printed(8), detail: { text: `${"x".repeat(700)}!\nshort\n` } };
  const answer = async (tokens: number) => {
    const one = () => ({ items: [long], position: at(99) });
    return (await answerOf(readOutput, { session: "s", tokens }, one)).text;
  };
  expect(await answer(4_000)).toContain("Left out: the ends of long lines. Ask with more `tokens`.");
  expect(await answer(8_000)).toContain("x!\n| short\n");
  expect(await answer(8_000)).not.toContain("long lines");
});

it("output of others only is not taken for all that there is, and none is skipped in the next call", async () => {
  let newest = 9_000;
  const others = () => {
    const items = Array.from({ length: 200 }, (_, index) => printed(newest - 199 + index));
    newest -= 200;
    return { items, position: at(9_000) };
  };
  const { text } = await answerOf(readOutput, { session: "s", subject: "web" }, others);
  expect(text).not.toContain("No output is recorded");
  expect(text).toContain(`None of the output from position ${at(7_001)} on belongs to it.`);
  expect(text).toContain(`and with before ${at(7_001)}.`);
});
