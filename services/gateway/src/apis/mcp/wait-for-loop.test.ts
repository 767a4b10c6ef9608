import type { EventJson } from "@tapedeck/shared/events/json";
import { expect, it } from "vitest";
import type { CallContext } from "../../call-context.ts";
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
