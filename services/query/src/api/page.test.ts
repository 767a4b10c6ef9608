import { ListOperationsResponse, Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import { storedOffset } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import { listPage, pageOf } from "./page.ts";

const defaultMessageBytes = 4 * 1024 * 1024;
const codec = Operation;
const positionOf = storedOffset;

it("pages of large items fit into a message of gRPC, and together have every item", () => {
  const all = Array.from({ length: 100 }, (_, index) => 100 - index);
  // The longest error that the tables hold.
  const itemOf = (position: number) => Operation.fromPartial({ id: String(position), error: "界".repeat(65_536) });
  const read: string[] = [];
  let pages = 0;
  for (let page = ""; page !== "" || pages === 0; pages++) {
    const bounds = pageOf({ limit: 1_000, page });
    const rows = all.filter((position) => position < bounds.before);
    const answer = listPage(rows, bounds, { positionOf, itemOf, codec });
    expect(ListOperationsResponse.encode({ ...answer, position: "" }).finish().byteLength).toBeLessThan(
      defaultMessageBytes,
    );
    read.push(...answer.items.map(({ id }) => id));
    page = answer.next_page;
  }
  expect(read).toEqual(all.map(String));
  expect(pages).toBeGreaterThan(4);
});

it("a page has as many items as its limit allows, and names a next one only where there is more", () => {
  const itemOf = (position: number) => Operation.fromPartial({ id: String(position) });
  const bounds = pageOf({ limit: 2, page: "" });
  expect(listPage([5, 4, 3], bounds, { positionOf, itemOf, codec })).toMatchObject({
    items: [{ id: "5" }, { id: "4" }],
    next_page: expect.stringMatching(/./),
  });
  expect(listPage([5, 4], bounds, { positionOf, itemOf, codec }).next_page).toBe("");
});
