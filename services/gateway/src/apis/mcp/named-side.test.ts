import { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { expect, it } from "vitest";
import { type Lister, listsApi } from "../tapedeck/list-request.ts";
import { sideOf } from "./named-side.ts";
import type { McpCall } from "./tool.ts";

it("the newest loop of a number is asked for by the number, as of the moment of the call", async () => {
  const requests: ListRequest[] = [];
  const listOperations = async (request: ListRequest) => {
    requests.push(request);
    const items = [Operation.fromPartial({ kind: "loop", session: "01A1", runner: 2, loop: 4 })];
    return { items, next_page: "", position: "510a-a" };
  };
  const lists = listsApi({ listOperations } as unknown as Lister);
  const call = { context: { workspace: "default" }, apis: { tapedeck: { lists } } } as unknown as McpCall;
  expect(await sideOf(call, "alice/shop#4", "510a-a")).toBe("01A1.2.4");
  expect(requests).toMatchObject([{ kinds: ["loop"], loop: 4, limit: 1, at: "510a-a" }]);
});
