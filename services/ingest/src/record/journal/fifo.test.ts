import fc from "fast-check";
import { expect, it } from "vitest";
import { Fifo } from "./fifo.ts";

it("gives what an array gives from whose front is taken", () => {
  const steps = fc.array(fc.oneof(fc.constant("push" as const), fc.nat({ max: 12 })), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (all) => {
      const fifo = new Fifo<number>();
      const array: number[] = [];
      for (const [item, step] of all.entries()) {
        if (step === "push") {
          fifo.push(item);
          array.push(item);
        } else {
          fifo.drop(step);
          array.splice(0, step);
        }
        expect(fifo.length).toBe(array.length);
        for (let index = -array.length - 1; index <= array.length; index++)
          expect(fifo.at(index)).toBe(array.at(index));
      }
    }),
  );
});
