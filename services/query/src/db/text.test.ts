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

it("keys have at most 500 bytes, whatever the characters, and are cut between them", () => {
  for (const character of ["n", "é", "李", "\u{1F600}", "\0", "\uD800"]) {
    for (const count of [100, 124, 125, 126, 166, 167, 168, 249, 250, 251, 500, 501, 2_000]) {
      const name = character.repeat(count);
      const made = key(name);
      expect(Buffer.byteLength(made)).toBeLessThanOrEqual(500);
      expect(
        made.isWellFormed() &&
          !made.includes("\0") &&
          !/\uFFFD…/.test(character === "\0" || character === "\uD800" ? "" : made),
      ).toBe(true);
      if (Buffer.byteLength(text(name)) <= 500) expect(made).toBe(text(name));
      else expect(made).not.toBe(key(`${name}${character}`));
    }
  }
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
