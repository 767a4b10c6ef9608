import { describe, expect, it } from "vitest";
import { compareVersions, parseCondition, parseVersion, type Version } from "./versions.ts";

const version = (text: string): Version => {
  const parsed = parseVersion(text);
  if (parsed === undefined) throw new Error(`${text} is no version`);
  return parsed;
};

describe("order", () => {
  it("of numbers, and of pre-releases before what they lead to", () => {
    const sorted = ["0", "0.9", "1.0.0-alpha", "1.0.0-rc2", "1.0.0-rc10", "1.0", "1.0.1", "1.10", "20230615.0.0"];
    expect(sorted.toReversed().toSorted((a, b) => compareVersions(version(a), version(b)))).toEqual(sorted);
  });

  it.each([
    ["1", "1.0.0"],
    ["v1.2", "1.2.0"],
    ["1.2.0+build5", "1.2"],
  ])("%s is %s", (one, other) => expect(compareVersions(version(one), version(other))).toBe(0));

  it.each(["", "x", "1.", ".1", "1..2", "1 2", "1.0.0-"])("%j is no version", (text) =>
    expect(parseVersion(text)).toBeUndefined(),
  );
});

describe("conditions", () => {
  it.each([
    ["1.2", "1.2.0", true],
    ["= 1.2", "1.2.1", false],
    ["!= 1.2", "1.2.1", true],
    ["!=1.2", "1.2", false],
    ["> 0", "0.0.1", true],
    ["> 0", "0.0.0", false],
    [">= 1.2", "1.2", true],
    ["< 2", "1.99", true],
    ["< 2", "2.0", false],
    ["<= 2", "2.0", true],
    ["~> 1.2", "1.9", true],
    ["~> 1.2", "2.0", false],
    ["~> 1.2", "1.1", false],
    ["~> 1.2.3", "1.2.9", true],
    ["~> 1.2.3", "1.3", false],
    ["~> 1", "1.9", true],
    ["~> 1", "2.0", false],
    [">= 1, < 2", "1.5", true],
    [">= 1,< 2", "2.5", false],
    ["> 0", "2.0-rc1", false],
    ["~> 2.0", "2.1-rc1", false],
    [">= 2.0-beta", "2.0-rc1", true],
    [">= 2.0-beta", "2.1-rc1", false],
    [">= 2.0-beta", "2.1", true],
    ["= 2.0-rc1", "2.0-rc1", true],
    ["!= 2.0", "2.0-rc1", true],
  ])("%s: %s is %s", (condition, text, fits) => {
    expect(parseCondition(condition)?.(version(text))).toBe(fits);
  });

  it.each(["", "newest", "> x", "=> 1", "> 1,", ", > 1", "1 || 2"])("%j is none", (text) =>
    expect(parseCondition(text)).toBeUndefined(),
  );
});

it("a long run of spaces in a condition takes no quadratic time", () => {
  const before = process.cpuUsage();
  expect(parseCondition(`${" ".repeat(100_000)}1 2`)).toBeUndefined();
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});
