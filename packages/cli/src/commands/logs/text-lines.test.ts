import { expect, it } from "vitest";
import { TextLines } from "./text-lines.ts";

it("makes whole lines of pieces from several that print at once", () => {
  const lines = new TextLines();
  expect(lines.take("web", "one\ntw")).toEqual([{ origin: "web", text: "one" }]);
  expect(lines.take("api", "hello\r\n")).toEqual([{ origin: "api", text: "hello" }]);
  expect(lines.take("web", "o\n\nthree")).toEqual([
    { origin: "web", text: "two" },
    { origin: "web", text: "" },
  ]);
  expect(lines.rest()).toEqual([{ origin: "web", text: "three" }]);
  expect(lines.rest()).toEqual([]);
});
