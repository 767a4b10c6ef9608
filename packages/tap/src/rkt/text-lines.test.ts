import { GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { linesOf, messageOf, textOf, timeOf } from "./text-lines.ts";

describe("the time of a line", () => {
  it.each([
    ["2026-11-20 15:28:24.368852 +0000 UTC MESSAGE=web", 1_795_188_504_368_852_000n],
    ["2026-11-20 15:28:29.36926 +0000 UTC MESSAGE=web", 1_795_188_509_369_260_000n],
    ["2026-11-20 15:28:24 +0000 UTC MESSAGE=", 1_795_188_504_000_000_000n],
    ["2026-11-20 16:28:24.5 +0100 CET MESSAGE=x", 1_795_188_504_500_000_000n],
    ["2026-11-20 10:58:24.5 -0430 -0430 MESSAGE=x", 1_795_188_504_500_000_000n],
    ["1969-12-31 23:59:59.9 +0000 UTC MESSAGE=x", -100_000_000n],
    ["  at java.lang.Thread.run(Thread.java:1)", undefined],
    ["2026-11-20 15:28:24.5 +0000 UTC text of an app that prints Go's times", undefined],
    ["9999-99-99 99:99:99 +0000 UTC MESSAGE=x", undefined],
    ["", undefined],
  ])("%s", (text, time) => {
    expect(timeOf(text)).toBe(time);
  });
});

describe("the lines of a response", () => {
  it("keep their bytes, whatever these are", () => {
    const broken = Buffer.from([0x0a, 3, 0x61, 0xff, 0x62]);
    const [first, second, ...others] = linesOf(Buffer.concat([encode(["one"]), broken])) ?? [];
    expect(others).toEqual([]);
    expect(first && textOf(first)).toBe("one");
    expect(second).toEqual(broken);
    expect(second && textOf(second)).toBe("a\ufffdb");
  });

  it("are none in an empty one, and unknown in bytes that are none", () => {
    expect(linesOf(Buffer.alloc(0))).toEqual([]);
    expect(linesOf(Buffer.from([0x0a, 200]))).toBeUndefined();
  });

  it("say something after time and field", () => {
    expect(messageOf("2026-11-20 15:28:24 +0000 UTC MESSAGE=web starting")).toBe("web starting");
    expect(messageOf("  continued")).toBe("  continued");
  });
});

function encode(lines: string[]): Buffer {
  return Buffer.from(GetLogsResponse.encode({ lines }).finish());
}
