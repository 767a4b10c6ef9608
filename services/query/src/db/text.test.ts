import { expect, it } from "vitest";
import { key, longText, plain, text } from "./text.ts";

it("has no NUL, in names and values alike", () => {
  expect(text("a\0b")).toBe("a\uFFFDb");
  expect(JSON.stringify(plain({ "a\0": ["\0", { b: "\0" }] }))).not.toContain("\\u0000");
});

it("keeps long keys distinct and short enough for an index", () => {
  const [one, other] = [key(`${"n".repeat(5_000)}1`), key(`${"n".repeat(5_000)}2`)];
  expect(one).not.toBe(other);
  expect(Buffer.byteLength(key("\u{1F600}".repeat(5_000)))).toBeLessThan(2_700);
  expect(key("web")).toBe("web");
});

it("cuts text for people between characters", () => {
  const cut = longText("\u{1F600}".repeat(100_000));
  expect(cut.length).toBeLessThanOrEqual(65_536);
  expect(cut.isWellFormed()).toBe(true);
});

it("writes messages as JSON by their names on the wire", () => {
  const message = { a_b: 1n, bytes: Buffer.from("x"), not: undefined, nan: Number.NaN, _unknownFields: { 1: [] } };
  expect(plain(message)).toEqual({ a_b: "1", bytes: "eA==", nan: null });
});
