import { CompareResponse } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { expect, it } from "vitest";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import type { McpCall } from "./tool.ts";
import { whyText } from "./why-failed.ts";

it("an answer that nothing failed says what was not read", () => {
  const unread = ["Only its newest 500 steps were compared."];
  const left = { name: "loop 4", unit: "loop", session: "s", runner: 1, loop: 4, outcome: "succeeded", unread };
  const comparison = comparisonJson(CompareResponse.fromPartial({ left, position: "100-a" }));
  const text = whyText({ page: "" } as McpCall, comparison, 4_000, { position: "100-a", again: "" });
  expect(text).toContain("Nothing failed in this:");
  expect(text).toContain('Of "loop 4": Only its newest 500 steps were compared.');
});
