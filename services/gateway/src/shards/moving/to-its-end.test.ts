import { abortable } from "@tapedeck/shared/sync/abortable";
import { expect, it } from "vitest";
import { type ToItsEnd, toItsEnd } from "./to-its-end.ts";

/** Three steps, of which the last two wait until they may. */
function steps(more: Partial<ToItsEnd<number>> = {}) {
  const [caller, closing, may] = [new AbortController(), new AbortController(), Promise.withResolvers<void>()];
  const [done, failures]: [number[], unknown[]] = [[], []];
  const begin = async function* (signal: AbortSignal) {
    for (const step of [1, 2, 3]) {
      if (step > 1) await abortable(may.promise, signal);
      done.push(step);
      yield step;
    }
  };
  const failedAlone = (error: unknown) => failures.push(error);
  const all = toItsEnd({ begin, caller: caller.signal, closing: closing.signal, failedAlone, ...more });
  return { all, caller, closing, may: () => may.resolve(), done, failures };
}

it("yields everything", async () => {
  const { all, may } = steps();
  may();
  expect(await Array.fromAsync(all)).toEqual([1, 2, 3]);
});

it("goes on to its end when its reader leaves, who waits for it", async () => {
  const { all, caller, may, done, failures } = steps();
  await all.next();
  caller.abort();
  const left = all.return();
  expect(done).toEqual([1]);
  may();
  await left;
  expect([done, failures]).toEqual([[1, 2, 3], []]);
});

it("goes on when its reader leaves while it reads", async () => {
  const { all, caller, may, done } = steps();
  await all.next();
  const reading = all.next();
  caller.abort();
  const left = all.return();
  may();
  expect(await reading).toEqual({ done: false, value: 2 });
  await left;
  expect(done).toEqual([1, 2, 3]);
});

it("is over a while after its caller has left, and says so", async () => {
  const { all, caller, done, failures } = steps({ aloneMs: 0 });
  await all.next();
  caller.abort();
  await all.return();
  expect([done, failures]).toEqual([[1], [expect.objectContaining({ message: "it took too long" })]]);
});

it("waits for a caller who stays, however long it takes", async () => {
  const { all, may, done } = steps({ aloneMs: 0 });
  await all.next();
  const reading = all.next();
  setImmediate(() => setImmediate(may));
  expect(await reading).toEqual({ done: false, value: 2 });
  expect(done).toEqual([1, 2]);
});

it("is over when the gateway ends", async () => {
  const { all, closing, failures } = steps();
  await all.next();
  const left = all.return();
  closing.abort(new Error("the gateway ends"));
  await left;
  expect(failures).toEqual([new Error("the gateway ends")]);
});

it("gives its error to a caller who is there, and to nobody else", async () => {
  const { all, closing, failures } = steps();
  await all.next();
  closing.abort(new Error("the gateway ends"));
  await expect(all.next()).rejects.toThrow("the gateway ends");
  expect(failures).toEqual([]);
});
