import { describe, expect, it } from "vitest";
import { maskText } from "../mask-text.ts";
import { fake } from "../testing/corpus.ts";
import { tokenTable as writtenTable } from "./renew-token-table.ts";
import { shapesOf } from "./rule-shapes.ts";
import type { TokenShape } from "./token-shape.ts";
import { gitleaksVersion, tokenTable } from "./token-table.ts";

describe("the shapes of a rule", () => {
  it("are prefix, characters and length", () => {
    expect(shapesOf("a", "abc_[0-9a-fA-F]{40}", [])).toEqual([
      { id: "a", parts: ["abc_", ["0-9A-Fa-f", 40, 40]], alone: false, near: [] },
    ]);
    expect(shapesOf("b", `\\b(ab-(?i)[a-z]{30,50})(?:[\\x60'"\\s;]|\\\\[nr]|$)`, [])).toEqual([
      { id: "b", parts: ["ab-", ["A-Za-z", 30, 50]], alone: true, near: [] },
    ]);
  });

  it("are one shape for each alternative, with the fixed text between", () => {
    const shapes = shapesOf("c", "(?:live|test)_key-[\\w-]{20}\\.\\d{2}(?:[a-f]{4}-){2}z", []);
    expect(shapes.map(({ parts }) => parts)).toEqual(
      ["live_key-", "test_key-"].map((prefix) => [
        prefix,
        ["\\-0-9A-Z_a-z", 20, 20],
        ".",
        ["0-9", 2, 2],
        ["a-f", 4, 4],
        "-",
        ["a-f", 4, 4],
        "-z",
      ]),
    );
  });

  it("have the word that a context asks for", () => {
    const context = `[\\w.-]{0,50}?(?:acme)(?:[ \\t\\w.-]{0,20})[\\s'"]{0,3}(?:=|:)[\\x60'"\\s=]{0,5}(KEY-[A-Z]{27})(?:[\\x60'"\\s;]|\\\\[nr]|$)`;
    expect(shapesOf("d", `(?i)${context}`, ["acme", "key-"])).toEqual([
      { id: "d", parts: ["KEY-", ["A-Za-z", 27, 27]], alone: true, near: ["acme"] },
    ]);
  });

  it("are none without a fixed beginning, or where there is too little", () => {
    for (const regex of ["[a-z]{40}", "ab[0-9]{30}", "abcdef[0-9]{4}", "https?://[a-z]{30}", "abc_(?=x)[a-z]{30}"]) {
      expect(shapesOf("e", regex, [])).toEqual([]);
    }
  });
});

describe("the table of tokens", () => {
  it("is written from a rule set, with its version", () => {
    const rule = (id: string, regex: string) =>
      `[[rules]]\nid = "${id}"\nregex = '''${regex}'''\nkeywords = ["${id}"]\n`;
    const toml = `title = "x"\n\n${rule("one", "one_[a-z]{20}")}\n${rule("two", "[a-z]{20}")}`;
    const written = writtenTable(toml, "v0.0.1");
    expect(written).toContain("Token shapes of gitleaks v0.0.1");
    expect(written).toContain("1 shapes of 1 rules; 1 rules go by names");
    expect(written).toContain('{id:"one",parts:["one_",["a-z",20,20]],alone:false,near:[]},');
  });

  it("is large, and has its version", () => {
    expect(gitleaksVersion).toMatch(/^v\d+\.\d+\.\d+$/);
    expect(tokenTable.length).toBeGreaterThan(140);
  });

  /** Made of the first characters of its alphabets. */
  function sample({ parts, near }: TokenShape): string {
    const pieces = parts.map((part) => {
      if (typeof part === "string") return part;
      const [alphabet, least, max] = part;
      const allowed = new RegExp(`[${alphabet}]`);
      const from = [...fake("", 200), ..."-_=+/abcdeprwxyz"].filter((one) => allowed.test(one)).join("");
      const length = Math.min(Math.max(least, 1), max);
      return from.repeat(Math.ceil(length / from.length)).slice(0, length);
    });
    return `${near.length > 0 ? `${near[0]} ` : ""}«${pieces.join("")}»`;
  }

  it.each(tokenTable)("finds $id", (shape) => {
    const marked = `seen ${sample(shape)} there`;
    const secret = /«(.*)»/.exec(marked)?.[1] ?? "";
    const { text } = maskText(marked.replace(/[«»]/g, ""));
    expect(text).toBe(marked.replace(`«${secret}»`, "*".repeat(secret.length)));
  });
});
