import { expect, it } from "vitest";
import { mapped } from "./mapped.ts";

function source(values: readonly number[]) {
  const calls = { returned: 0 };
  async function* generate() {
    try {
      yield* values;
    } finally {
      calls.returned++;
    }
  }
  return { calls, values: generate() };
}

it("maps each value and leaves out those that become undefined", async () => {
  const { values, calls } = source([1, 2, 3, 4]);
  const odd: number[] = [];
  for await (const value of mapped(values, (one) => (one % 2 === 0 ? undefined : one * 10))) odd.push(value);
  expect(odd).toEqual([10, 30]);
  expect(calls.returned).toBe(1);
});

it("ends its source when the loop is left and when a value can't be mapped", async () => {
  const left = source([1, 2, 3]);
  for await (const _ of mapped(left.values, (one) => one)) break;
  expect(left.calls.returned).toBe(1);

  const failing = source([1, 2, 3]);
  const iterator = mapped(failing.values, () => {
    throw new Error("not a number of ours");
  });
  await expect(iterator.next()).rejects.toThrow("not a number of ours");
  expect(failing.calls.returned).toBe(1);
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});
