import { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import { expect, it } from "vitest";
import { listsApi } from "./list-request.ts";
import { listsJson } from "./lists.ts";
import { statsApi } from "./stats.ts";

it("percentiles are whole milliseconds, or null where nothing was built", async () => {
  const stats = {
    group: {},
    count: 2n,
    failed: 0n,
    failure_rate: 0,
    cached: 0n,
    canceled: 0n,
    unknown: 0n,
    untimed: 0n,
  };
  const nothing = async () => ({ items: [], next_page: "", position: "e-1" });
  const query = {
    stats: nothing,
    buildStats: async () => ({ items: [{ ...stats, p50_ms: 1_234.5678, p90_ms: 0.4 }], position: "e-1" }),
  };
  const answer = statsApi({ query, compareDevelopers: false });
  const { items } = await answer({ workspace: "acme" }, "builds", {});
  expect(items).toMatchObject([{ p50Ms: 1_235, p90Ms: 0, p99Ms: null }]);
});

it("an operation has the code that its app ended with: 0 is one, and null where there is none", async () => {
  const nothing = async () => ({ items: [], next_page: "", position: "e-1" });
  const items = [42, 0, undefined].map((exit_code) => Operation.fromPartial({ kind: "app", exit_code }));
  const lists = listsJson(
    listsApi({
      search: async () => ({ ...(await nothing()), total_is_minimum: false }),
      listSources: nothing,
      listSessions: nothing,
      listOperations: async () => ({ items, next_page: "", position: "e-1" }),
    }),
  );
  const page = await lists.operations({ workspace: "acme" }, { kind: ["app"] });
  expect(page.items.map((item) => "exitCode" in item && item.exitCode)).toEqual([42, 0, null]);
});

it("operations of one subject that run at the same time are distinguished by their instance", async () => {
  const nothing = async () => ({ items: [], next_page: "", position: "e-1" });
  const items = ["J1", "J2"].map((instance) => Operation.fromPartial({ kind: "command", subject: "up", instance }));
  const lists = listsJson(
    listsApi({
      search: async () => ({ ...(await nothing()), total_is_minimum: false }),
      listSources: nothing,
      listSessions: nothing,
      listOperations: async () => ({ items, next_page: "", position: "e-1" }),
    }),
  );
  const page = await lists.operations({ workspace: "acme" }, { kind: ["command"] });
  expect(page.items).toMatchObject([{ instance: "J1" }, { instance: "J2" }]);
});

it("operations of a loop are asked of its runner in one session", async () => {
  const requests: unknown[] = [];
  const nothing = async () => ({ items: [], next_page: "", position: "e-1" });
  const lists = listsJson(
    listsApi({
      search: async () => ({ ...(await nothing()), total_is_minimum: false }),
      listSources: nothing,
      listSessions: nothing,
      listOperations: async ({ sessions, runner, loop }) => {
        requests.push({ sessions, runner, loop });
        return nothing();
      },
    }),
  );
  const inWorkspace = { workspace: "acme" };
  await lists.operations(inWorkspace, { session: ["01A"], runner: 0, loop: 14 });
  await lists.operations({ ...inWorkspace, session: "01B" }, { runner: 2 });
  expect(requests).toEqual([
    { sessions: ["01A"], runner: 0, loop: 14 },
    { sessions: ["01B"], runner: 2 },
  ]);
  await expect(lists.operations(inWorkspace, { session: ["01A"], loop: 1 })).rejects.toMatchObject({
    details: { field: "runner" },
  });
  for (const session of [[], ["01A", "01B"]])
    await expect(lists.operations(inWorkspace, { session, runner: 1 })).rejects.toMatchObject({
      details: { field: "session" },
    });
});
