import { expect, it } from "vitest";
import { sideNamed } from "./side-name.ts";

it("a loop has a runner and a number of up to 32 bits", () => {
  const loop = { type: "loop", session: "01A" } as const;
  expect(sideNamed("01A.1.2147483647", "left")).toEqual({ ...loop, runner: 1, loop: 2147483647 });
  expect(sideNamed("01A.4294967295.2", "left")).toEqual({ ...loop, runner: 4294967295, loop: 2 });
  expect(() => sideNamed("01A.1.4294967296", "left")).toThrow('left "01A.1.4294967296" is not a loop');
});
