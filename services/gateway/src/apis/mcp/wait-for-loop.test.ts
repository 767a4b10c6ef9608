import { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import { CompareResponse } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import type { EventJson } from "@tapedeck/shared/events/json";
import { expect, it } from "vitest";
import type { CallContext } from "../../call-context.ts";
import type { CompareRequest } from "../tapedeck/compare/compare.ts";
import type { EventsPageRequest } from "../tapedeck/events-page.ts";
import type { McpCall } from "./tool.ts";
import { waitForLoop } from "./wait-for-loop.ts";

const event = (position: string, channel: string, more: Partial<EventJson>): EventJson => ({
  position,
  recordedAt: new Date().toISOString(),
  id: `s.${channel}.${position}`,
  source: "default/alice/shop/skaffold",
  session: "s",
  channel,
  ordinal: 1,
  frameOrdinal: 1,
  part: 0,
  kind: "mirror.received",
  summary: "",
  operation: { kind: "loop", runner: 1, loop: 4 },
  ...more,
});

it("a loop that has ended on v1 is compared once v2 has reported its end, and all that belongs to it", async () => {
  const end = event("100-a", "v1", { kind: "loop.failed", outcome: "failed" });
  const mirrors = [
    event("101-a", "v2", { detail: { what: "renderEvent", status: "Failed" } }),
    event("102-a", "v1", { detail: { what: "devLoopEvent" } }),
    event("103-a", "v2", { detail: { what: "taskEvent", taskId: "DevLoop-4", status: "Failed" } }),
    event("104-a", "v2", { detail: { what: "taskEvent", taskId: "DevLoop-5", status: "InProgress" } }),
  ];
  let looks = 0;
  const events = async ({ filter, after }: EventsPageRequest) => {
    if (!filter.kinds?.includes("mirror.received")) return { items: [end], position: "100-a" };
    expect(after).toBe("100-a");
    looks++;
    return { items: mirrors.slice(0, looks), position: "110-a" };
  };
  const compared: (string | undefined)[] = [];
  const enough = new Error("compared");
  const compare = async ({ minPosition }: CallContext) => {
    compared.push(minPosition);
    throw enough;
  };
  const context = { workspace: "default", signal: AbortSignal.timeout(20_000) };
  const call = { context, apis: { tapedeck: { events, compare } }, page: "", waits: () => {} } as unknown as McpCall;
  await expect(waitForLoop.answer({ after: "start" }, call)).rejects.toBe(enough);
  expect([compared, looks]).toEqual([["103-a"], 3]);
});

/** The answer about an end, after which the units of its session stand so; and the side that was compared. */
async function endOf(end: EventJson, units: readonly Operation[]) {
  let compared: string | undefined;
  const compare = async (_context: CallContext, { left }: CompareRequest) => {
    compared = left;
    return CompareResponse.fromPartial({
      left: { unit: "loop", outcome: "succeeded", session: "s" },
      position: "200-a",
    });
  };
  const operations = async (_context: object, { at }: { at?: string }) => {
    expect(at).toBe(end.position);
    return { items: units, next_page: "", position: at };
  };
  const events = async () => ({ items: [end], position: end.position });
  const context = { workspace: "default", signal: AbortSignal.timeout(20_000) };
  const apis = { tapedeck: { events, compare, lists: { operations } } };
  const call = { context, apis, page: "", waits: () => {} } as unknown as McpCall;
  return { text: await waitForLoop.answer({ after: "start" }, call), compared };
}

const ended = event("100-a", "tapedeck", { kind: "session.ended", summary: "the session ended: exit" });
const command = { kind: "command", session: "s", subject: "up" };
const commandThat = (outcome: string) => Operation.fromPartial({ ...command, outcome });
const thirdLoop = Operation.fromPartial({ kind: "loop", session: "s", runner: 1, loop: 3 });

it("the end of a process is answered with its last loop, not with one that failed before", async () => {
  const { text, compared } = await endOf(ended, [thirdLoop]);
  expect([text, compared]).toEqual([
    expect.stringContaining('The process is over: "the session ended: exit".'),
    "s.1.3",
  ]);
  const good = await endOf(ended, [commandThat("succeeded")]);
  expect([good.text, good.compared]).toEqual([expect.stringContaining('command "up" succeeded.'), undefined]);
  expect(good.text).toContain("The process is over");
});

it("the end of a process without loops is answered with the session as of then", async () => {
  expect((await endOf(ended, [])).compared).toBe("s@100-a");
  expect((await endOf(ended, [commandThat("failed")])).compared).toBe("s@100-a");
});

it("a process that is recorded no longer is not said to be over", async () => {
  const lost = { ...ended, kind: "session.lost", summary: "the session was lost: gone" };
  const { text } = await endOf(lost, [thirdLoop]);
  expect(text).toContain('whether it goes on is not known: "the session was lost: gone".');
  expect(text).not.toContain("is over");
  const running = await endOf(lost, [commandThat("")]);
  expect(running.text).toContain('command "up" has no known outcome.');
  expect(running.text).not.toContain("is over");
});

it("a command that failed is compared in its own session, not in another one of its source", async () => {
  const failed = event("100-a", "jobs", { kind: "command.finished", outcome: "failed", operation: command });
  expect((await endOf(failed, [])).compared).toBe("s@100-a");
});
