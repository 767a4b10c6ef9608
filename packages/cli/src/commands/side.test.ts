import { expect, it } from "vitest";
import { sideOf } from "./side.ts";

it("a side has a time as people say it, or a position", () => {
  expect(sideOf("alice/shop")).toBe("alice/shop");
  expect(sideOf("alice/shop@383600-t3k9x2")).toBe("alice/shop@383600-t3k9x2");
  expect(sideOf("01M7XB1CJJ74KGYJT57DM4N80H@10m")).toMatch(/^01M7XB1CJJ74KGYJT57DM4N80H@\d{4}-\d\d-\d\dT.*Z$/);
  expect(() => sideOf("alice/shop@soonish")).toThrow('"soonish" is neither a position nor a time');
});
