import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { clockWarnings, statusCells } from "./run.ts";

const cells = (status: string, address: string) =>
  statusCells({ status, address, notHeardSince: null }).map((cell) => stripVTControlCharacters(cell));

it("says of an imported source that it is, and of what", () => {
  expect(cells("waiting", "session of demo/alice/shop/skaffold")).toEqual([
    "imported",
    "session of demo/alice/shop/skaffold",
  ]);
  expect(cells("waiting", "file:/tmp/a.log, /tmp/b.log")).toEqual(["imported", "a.log, b.log"]);
  expect(cells("recording", "127.0.0.1:50051")).toEqual(["recording", "127.0.0.1:50051"]);
  expect(cells("waiting", "")).toEqual(["waiting", "-"]);
});

it("says whose clock is off, and how", () => {
  const source = "default/alice/shop/skaffold";
  expect(clockWarnings({ source, clockOffsetMs: 86_400_000 })[0]).toMatch(
    /^the clock of alice\/shop.* is 1 d ahead of the log's: /,
  );
  expect(clockWarnings({ source, clockOffsetMs: -7_200_000 })[0]).toMatch(
    / is 2 h behind the log's, or its events were recorded late: /,
  );
});
