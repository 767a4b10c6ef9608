import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapedJson, terminalText } from "./terminal-text.ts";

const esc = "\u001b";
/** Nothing that a terminal obeys. */
const clean = /^(?:[\t\n]|[^\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069])*$/u;

describe("terminalText", () => {
  it.each([
    ["a title", `a${esc}]0;x\u0007b`],
    ["the clipboard", `a${esc}]52;c;aGk=${esc}\\b`],
    ["the clipboard, by C1", "a\u009d52;c;aGk=\u009cb"],
    ["a colour", `a${esc}[31mb`],
    ["the cursor, by C1", "a\u009b2Jb"],
    ["a device control string", `a${esc}P1$r0m${esc}\\b`],
    ["a reset", `a${esc}cb`],
    ["a character set", `a${esc}(0b`],
    ["an override", "a\u202e\u202cb"],
    ["isolates and marks", "a\u2066\u2069\u200e\u200f\u061cb"],
    ["carriage return, backspace and DEL", "a\r\b\u007fb"],
    ["an introducer without an end", `a${esc}`.concat("\u009bb")],
  ])("removes %s whole", (_what, text) => expect(terminalText(text).replace("b", "").replace("a", "")).toBe(""));

  it("keeps what follows a string without an end", () => {
    expect(terminalText(`one${esc}]0;two\nthree\u0007`)).toBe("one0;two\nthree");
  });

  it("keeps tabs, lines, letters of all scripts and joined emoji", () => {
    const text = "a\tb\nüß 密码 שלום العربية 👩‍👩‍👧 ‍";
    expect(terminalText(text)).toBe(text);
  });

  const parts = [
    esc,
    "]",
    "[",
    "0;",
    "52;c;",
    "\u0007",
    "\\",
    "\u009b",
    "\u009d",
    "\u202e",
    "m",
    "31",
    "\n",
    "x",
    "é",
    "P",
  ];
  it("leaves nothing that a terminal obeys, in whatever order it comes, and is done after one pass", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ unit: "binary" })), { maxLength: 30 }),
        (some) => {
          const once = terminalText(some.join(""));
          expect(once).toMatch(clean);
          expect(terminalText(once)).toBe(once);
        },
      ),
      { numRuns: 500 },
    );
  });

  it.each(parts.flatMap((part) => [part, `${esc}${part}`, `\u009d${part}`]))(
    "takes work in proportion to the length of much of %j",
    (part) => {
      const work = (length: number) => {
        const text = part.repeat(length);
        const times = Array.from({ length: 3 }, () => {
          const before = process.threadCpuUsage();
          terminalText(text);
          const { user, system } = process.threadCpuUsage(before);
          return user + system;
        });
        return Math.min(...times);
      };
      work(10_000);
      // 16 times the text; were work to grow with its square, 256 times the work.
      let growth = Number.POSITIVE_INFINITY;
      for (let again = 0; again < 5 && growth >= 100; again++)
        growth = Math.min(growth, work(80_000) / Math.max(work(5_000), 500));
      expect(growth).toBeLessThan(100);
    },
  );
});

describe("escapedJson", () => {
  it("escapes what JSON.stringify leaves, and says the same", () => {
    const value = { "na\u009bme": "a\u202eb\u001b]0;x\u0007\u0085\u007f\u2028\u2066c" };
    const json = escapedJson(JSON.stringify(value));
    expect(json).toMatch(clean);
    expect(JSON.parse(json)).toEqual(value);
  });
});
