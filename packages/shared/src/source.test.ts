import { describe, expect, it } from "vitest";
import { eventSubject, sourceOfSubject } from "./log/subjects.ts";
import { asciiName, isNamePart, nameError, nameOfAscii, namePart, parseSourceName, sourceName } from "./source.ts";

const nfd = "jose\u0301";

describe("a part of a name", () => {
  it.each([
    ["Kim", "kim"],
    ["李", "李"],
    ["王", "王"],
    ["José", "josé"],
    [nfd, "josé"],
    ["Ærøskøbing shop", "ærøskøbing-shop"],
    ["Łukasz", "łukasz"],
    ["🦊", "🦊"],
    ["👩‍💻", "👩💻"],
    ["علی‌رضا", "علیرضا"],
    ["a/b", "a-b"],
    ["a／b", "a-b"],
    ["a\u202Eb", "a-b"],
    ["\u0301a", "-a"],
    ["", "-"],
    ["a.b c", "a-b-c"],
  ])("%j is %j", (text, part) => expect(namePart(text)).toBe(part));

  it("stays as it is once it is one, in at most 64 bytes, for every character", () => {
    for (let code = 0; code <= 0x1_ffff; code++) {
      const part = namePart(String.fromCodePoint(code));
      if (namePart(part) !== part || !isNamePart(part)) expect.fail(`U+${code.toString(16)}: ${part}`);
    }
    for (const text of ["李".repeat(64), "e\u0301".repeat(64), "🦊".repeat(20), `${"a".repeat(63)}é`, "İ".repeat(40)]) {
      expect(namePart(namePart(text))).toBe(namePart(text));
      expect(Buffer.byteLength(namePart(text))).toBeLessThanOrEqual(64);
    }
  });

  it("differs from that of another long name", () => {
    expect(namePart(`${"李".repeat(30)}a`)).not.toBe(namePart(`${"李".repeat(30)}b`));
    expect(namePart("a".repeat(64))).toBe("a".repeat(64));
  });

  it.each(["a\u0000", "a\u001b[31m", "\u202Eevil", "a\u200Bb", "a\u2066b", "\uFEFFa", "a\u00ADb", "a\u2028b"])(
    "is refused where somebody chose %j",
    (text) => expect(nameError(text)).toMatch(/U\+[0-9A-F]{4}/),
  );

  it.each(["李", "josé", nfd, "علی‌رضا", "👩‍💻", "a b"])("is not refused for %j", (text) =>
    expect(nameError(text)).toBeUndefined(),
  );
});

it.each(["李", "王", "josé", "🦊", "kim"])("a subject has %s as ASCII, and gives it back", (developer) => {
  const source = sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });
  const subject = eventSubject(source, "v1", "build.started");
  expect(subject).toMatch(/^[\x21-\x7e]+$/);
  expect(subject.split(".")).toHaveLength(8);
  expect(sourceOfSubject(subject)).toBe(source);
  expect(nameOfAscii(asciiName(source))).toBe(source);
});

it("a name that is not in its form is no source", () => {
  expect(parseSourceName("acme/李/shop/skaffold")).toBe("acme/李/shop/skaffold");
  for (const name of [`acme/${nfd}/shop/skaffold`, "acme/Kim/shop/skaffold", "acme/a\u202Eb/shop/skaffold", "a/b/c"]) {
    expect(parseSourceName(name)).toBeUndefined();
  }
});
