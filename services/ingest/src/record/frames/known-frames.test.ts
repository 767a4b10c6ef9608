import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KnownFrames } from "./known-frames.ts";

const at = { seconds: 1n, nanos: 0 };

describe("known frames", () => {
  it("are used up one for each that was recorded, by whichever of their hashes", () => {
    const hashes = fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.record({ hashes, isTaken: fc.boolean() })), (steps) => {
        const known = new KnownFrames();
        const expected: string[][] = [];
        for (const { hashes, isTaken } of steps) {
          if (isTaken) {
            const key = hashes.find((hash) => expected.some((keys) => keys.includes(hash)));
            expect(known.take(hashes, at)).toBe(key !== undefined);
            if (key !== undefined)
              expected.splice(
                expected.findIndex((keys) => keys.includes(key)),
                1,
              );
          } else {
            known.addEarlier(hashes);
            expected.push(hashes);
          }
          expect(known.size).toBe(expected.length);
        }
      }),
    );
  });

  it("are distinguished where the same array is added twice", () => {
    const known = new KnownFrames();
    const hashes = ["a", "b"];
    for (let i = 0; i < 2; i++) known.addEarlier(hashes);
    expect([1, 2, 3].map(() => known.take(["b"], at))).toEqual([true, true, false]);
    expect(known.size).toBe(0);
  });

  it("take at most 160 bytes each besides their hashes", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const frames = 100_000;
    const hashes = Array.from({ length: frames }, (_, i) => String(i).padStart(64, "x"));
    const known = new KnownFrames();
    collect();
    const before = process.memoryUsage().heapUsed;
    for (const hash of hashes) known.addEarlier([hash]);
    collect();
    expect((process.memoryUsage().heapUsed - before) / frames).toBeLessThan(160);
    expect(known.size).toBe(frames);
  });
});
