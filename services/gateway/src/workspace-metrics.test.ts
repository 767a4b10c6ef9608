import { createMetrics } from "@tapedeck/shared/service/metrics";
import { expect, it } from "vitest";
import type { ListedWorkspace } from "./apis/maintain/workspaces/list-workspaces.ts";
import { workspaceMetrics } from "./workspace-metrics.ts";

const workspace = (name: string, bytes: number, behindMessages: number | undefined): ListedWorkspace => ({
  workspace: name,
  state: "recorded",
  messages: bytes / 10,
  bytes,
  oldestAt: null,
  newestAt: null,
  tables: behindMessages === undefined ? null : { sources: 1, events: 1, behindMessages, query: "", waitsFor: null },
  retention: null,
});

it("the twenty largest workspaces are named, and the others are one sum, however many there are", async () => {
  const registry = createMetrics("gateway");
  let lists = 0;
  workspaceMetrics(registry, async () => {
    lists++;
    return Array.from({ length: 300 }, (_, at) => workspace(`w${at}`, (at + 1) * 10, at % 2 === 0 ? 1 : undefined));
  });
  const text = await registry.metrics();
  const valuesOf = (name: string) =>
    new Map(
      [...text.matchAll(new RegExp(`^${name}\\{workspace="([^"]+)".*\\} (\\d+)$`, "gm"))].map(([, of, value]) => [
        of,
        Number(value),
      ]),
    );
  const bytes = valuesOf("tapedeck_gateway_workspace_bytes");
  expect(bytes.size).toBe(21);
  expect([bytes.get("w299"), bytes.get("w280"), bytes.get("w279")]).toEqual([3_000, 2_810, undefined]);
  expect(bytes.get("(other)")).toBe(((1 + 280) * 280 * 10) / 2);
  expect(valuesOf("tapedeck_gateway_workspace_messages").get("w299")).toBe(300);
  const behind = valuesOf("tapedeck_gateway_workspace_behind_messages");
  expect([behind.get("w298"), behind.get("w299"), behind.get("(other)")]).toEqual([1, undefined, 140]);
  expect(lists).toBe(1);
});

it("there are no figures while the workspaces can't be listed", async () => {
  const registry = createMetrics("gateway");
  workspaceMetrics(registry, () => Promise.reject(new Error("NATS is away")));
  expect(await registry.metrics()).not.toMatch(/^tapedeck_gateway_workspace_bytes\{/m);
});
