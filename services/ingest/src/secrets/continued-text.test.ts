import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskContinued, maskPiece, tailOf } from "./continued-text.ts";
import { Tails } from "./pieces.ts";
import { fake } from "./testing/corpus.ts";

/** The pieces of one stream as they are recorded, one after the other. */
function recorded(...pieces: readonly string[]): readonly string[] {
  const tails = new Tails();
  return pieces.map((piece) => {
    const text = maskContinued(tails.before(""), maskPiece(piece).text).text;
    tails.took({ stream: "", text });
    return text;
  });
}

describe("output in pieces", () => {
  const token = fake("ghp_", 36);

  it.each([
    [
      "a token",
      [`using ${token.slice(0, 14)}`, `${token.slice(14)} now\n`],
      [`using ghp_${"*".repeat(10)}`, `${"*".repeat(26)} now\n`],
    ],
    ["a token's first characters", ["using gh", `${token.slice(2)} now\n`], ["using gh", `${"*".repeat(38)} now\n`]],
    ["a value", ["DB_PASSWORD=hun", "ter2 HOME=/\n"], ["DB_PASSWORD=***", "**** HOME=/\n"]],
    ["a name", ["DB_PASS", "WORD=hunter2\n"], ["DB_PASS", "WORD=*******\n"]],
    ["a value between more than two", ["TOKEN='ab", "cd", "ef' x\n"], ["TOKEN='**", "**", "**' x\n"]],
    ["an address", ["to https://bob:hun", "ter2@host/x\n"], ["to https://bob:***", "****@host/x\n"]],
    [
      "a name and its value on the next line",
      ["- name: DB_PASSWORD\n", "  value: hunter2\n"],
      ["- name: DB_PASSWORD\n", "  value: *******\n"],
    ],
  ])("has %s masked in both", (_, pieces, expected) => {
    expect(recorded(...pieces)).toEqual(expected);
  });

  it("has a private key masked that comes line by line", () => {
    const kind = "RSA PRIVATE KEY";
    const lines = [
      `-----BEGIN ${kind}-----\n`,
      `${fake("", 64)}\n`,
      `${fake("M", 20)}==\n`,
      `-----END ${kind}-----\n`,
      "done\n",
    ];
    expect(recorded(...lines)).toEqual([lines[0], `${"*".repeat(64)}\n`, `${"*".repeat(23)}\n`, lines[3], "done\n"]);
    expect(recorded(lines[0] ?? "", "Step 3/9 : RUN npm ci\n", "next\n")[1]).toBe("Step 3/9 : RUN npm ci\n");
  });

  it("leaves ornaments, and lines after lines", () => {
    const pieces = [
      "********",
      "done\n",
      "PASSWORD=\n",
      "hunter\n",
      "Downloading 12 %",
      " 40 %",
      " done\n",
      "see http://host:80",
      "80/x\n",
    ];
    expect(recorded(...pieces)).toEqual(pieces);
  });

  it("keeps every length, and is the same when it is read back from what was recorded", () => {
    const words = [
      "PASSWORD",
      "=",
      "token: ",
      " ",
      "\n",
      "ghp_",
      "abc1",
      "https://a:",
      "@host",
      '"',
      "*",
      "é",
      "-----BEGIN PRIVATE KEY-----\n",
    ];
    const piece = fc.array(fc.constantFrom(...words), { maxLength: 6 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const once = recorded(...pieces);
        expect(once.map((text) => Buffer.byteLength(text))).toEqual(pieces.map((text) => Buffer.byteLength(text)));
        expect(once.map((text) => maskPiece(text))).toEqual(once.map((text) => ({ text, secrets: 0 })));
        const tails = new Tails();
        for (const text of once) tails.took({ stream: "", text });
        const again = new Tails();
        for (const text of once) again.took({ stream: "", text: maskPiece(text).text });
        expect(again.before("")).toBe(tails.before(""));
      }),
      { numRuns: 500 },
    );
  });

  it("is open for no other stream", () => {
    const tails = new Tails();
    tails.took({ stream: "a", text: "TOKEN=***" });
    expect([tails.before("a"), tails.before("b")]).toEqual(["TOKEN=***", ""]);
    tails.took({ stream: "a", text: "**\n" });
    expect([tails.before("a"), tails.recent]).toEqual(["", ["TOKEN=***"]]);
    expect(tailOf("a line\n")).toBe("");
  });
});
