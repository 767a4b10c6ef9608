import { expect, it } from "vitest";
import { isReset, stateChanges } from "./state-change.ts";
import type { StateRow, StateSection } from "./state-sections.ts";

const row = (name: string, value: string): StateRow => ({ name, value, tone: "quiet" });
const section = (title: string, ...rows: readonly StateRow[]): StateSection => ({ title, rows });
const said = (before: readonly StateSection[], after: readonly StateSection[]) =>
  stateChanges(before, after).map((one) => [one.section, one.name, one.before?.value, one.after?.value]);

it("rows with another value, new ones and those that are gone have changed; equal ones have not", () => {
  const before = [
    section("Artifacts", row("web", "succeeded"), row("api", "succeeded"), row("old", "succeeded")),
    section("Ports", row("web:80", "localhost:8080")),
  ];
  const after = [
    section("Artifacts", row("api", "succeeded"), row("web", "failed")),
    section("Phases", row("deploy", "failed")),
  ];
  expect(said(before, after)).toEqual([
    ["Artifacts", "web", "succeeded", "failed"],
    ["Phases", "deploy", undefined, "failed"],
    ["Artifacts", "old", "succeeded", undefined],
    ["Ports", "web:80", "localhost:8080", undefined],
  ]);
  expect(said(after, after)).toEqual([]);
});

it("rows of one name are compared in their order, and those of another section are others", () => {
  const ports = (...locals: readonly string[]) => section("Ports", ...locals.map((local) => row("web:80", local)));
  expect(said([ports("8080", "8081")], [ports("8080", "9000")])).toEqual([["Ports", "web:80", "8081", "9000"]]);
  expect(said([ports("8080")], [ports("8080", "8081")])).toEqual([["Ports", "web:80", undefined, "8081"]]);
  expect(said([section("Artifacts", row("web", "ok"))], [section("Resources", row("web", "ok"))])).toHaveLength(2);
});

it("rows that a loop did not run again are distinguished from those that it changed", () => {
  const changes = stateChanges(
    [section("Artifacts", row("web", "ok"), row("api", "ok")), section("Ports", row("web:80", "localhost:8080"))],
    [section("Artifacts", row("web", "failed"), row("api", "not started"))],
  );
  const reset = (isRunning: boolean) => changes.filter((one) => isReset(one, isRunning)).map(({ name }) => name);
  expect([reset(false), reset(true)]).toEqual([["api"], ["api", "web:80"]]);
});
