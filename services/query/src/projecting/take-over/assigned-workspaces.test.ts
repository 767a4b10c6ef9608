import { defaultQuery } from "@tapedeck/shared/log/queries/query-map";
import { describe, expect, it } from "vitest";
import { AssignedWorkspaces, assignmentOf } from "./assigned-workspaces.ts";

const [b, c] = ["10.0.0.2:7053", "10.0.0.3:7053"];
const first = { name: defaultQuery, patterns: [] };
const second = { name: b, patterns: ["team-*", "acme"] };

describe("the part of each query in a workspace", () => {
  const entry = (at: string, also: readonly string[] = [], offered = false) => ({ at, also, offered });

  it.each([
    { workspace: "other", is: entry(defaultQuery), are: ["own", "none"] },
    { workspace: "acme", is: entry(defaultQuery), are: ["own", "taking"] },
    { workspace: "acme", is: entry(defaultQuery, [b]), are: ["own", "taking"] },
    { workspace: "acme", is: entry(b, [defaultQuery]), are: ["leaving", "own"] },
    { workspace: "acme", is: entry(b), are: ["none", "own"] },
    { workspace: "acme", is: entry(b, [], true), are: ["taking", "own"] },
    { workspace: "acme", is: entry(c), are: ["none", "none"] },
    { workspace: "acme", is: entry(c, [b, defaultQuery]), are: ["leaving", "leaving"] },
    { workspace: "acme", is: entry(c, [], true), are: ["taking", "taking"] },
    { workspace: "other", is: entry(c, [], true), are: ["taking", "none"] },
  ])("$workspace at $is.at, also $is.also, offered: $is.offered", ({ workspace, is, are }) => {
    expect([first, second].map((query) => assignmentOf(query, workspace, is))).toEqual(are);
  });
});

it("patterns name workspaces whole", () => {
  const assigned = new AssignedWorkspaces(second);
  const of = (...names: readonly string[]) => names.map((name) => assigned.of(name));
  expect(of("team-", "team-red", "acme")).toEqual(["taking", "taking", "taking"]);
  expect(of("my-team-red", "teamred", "acme2", "a", "ac.e")).toEqual(["none", "none", "none", "none", "none"]);
});

it("a query that has given all up has none", () => {
  const assigned = new AssignedWorkspaces({ name: b, patterns: [] });
  assigned.found(new Map([["acme", { at: b, also: [], offered: false }]]));
  expect([assigned.of("acme"), assigned.of("other")]).toEqual(["own", "none"]);
});

it("a query answers from tables that have rows, and says who has the others", () => {
  const assigned = new AssignedWorkspaces(first);
  const at = (also: readonly string[]) => new Map([["acme", { at: b, also, offered: false }]]);
  assigned.found(at([defaultQuery]));
  expect(assigned.refusalOf("acme")).toBeUndefined();
  assigned.found(at([]));
  expect(assigned.refusalOf("acme")).toBe(`the query at ${b} has the workspace acme, and this one does not`);
  expect(assigned.refusalOf("other")).toBeUndefined();
});
