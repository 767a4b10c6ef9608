import { expect, it } from "vitest";
import { passedOn } from "./passed-on.ts";

/** Numbers up to `last`, and what happens around them. */
function numbers(last: number, fault?: Error) {
  const log: string[] = [];
  async function* count(): AsyncGenerator<number, void> {
    try {
      for (let n = 1; n <= last; n++) yield n;
      if (fault !== undefined) throw fault;
    } finally {
      log.push("left");
    }
  }
  const hooks = {
    onStart: () => void log.push("began"),
    onError: (error: unknown) => void log.push(`failed: ${(error as Error).message}`),
    onDone: () => void log.push("finished"),
    onEnd: () => void log.push("ended"),
  };
  return { log, count, hooks };
}

it("the values of a generator are passed on, with what a hook makes of them, and the hooks hear of begin and end", async () => {
  const { log, count, hooks } = numbers(3);
  const passed = passedOn(count, { ...hooks, onValue: (n) => n * 10 });
  expect(log).toEqual([]);
  expect(await Array.fromAsync(passed)).toEqual([10, 20, 30]);
  expect(log).toEqual(["began", "left", "finished", "ended"]);
  expect(await passed.next()).toEqual({ done: true, value: undefined });
});

it("an error of the generator ends what is passed on, after the values before it", async () => {
  const { log, count, hooks } = numbers(2, new Error("broken"));
  const passed = passedOn(count, hooks);
  expect([await passed.next(), await passed.next()].map(({ value }) => value)).toEqual([1, 2]);
  await expect(passed.next()).rejects.toThrow("broken");
  expect(log).toEqual(["began", "left", "failed: broken", "ended"]);
  expect(await passed.next()).toEqual({ done: true, value: undefined });
});

it.each(["onNext", "onValue", "onDone"] as const)("an error of the hook %s ends both generators", async (hook) => {
  const { log, count, hooks } = numbers(2);
  const refuse = () => {
    throw new Error("refused");
  };
  const passed = passedOn(count, { ...hooks, [hook]: refuse });
  await expect(Array.fromAsync(passed)).rejects.toThrow("refused");
  // A generator of which no value was requested has nothing to leave.
  expect(log).toEqual([
    "began",
    ...(hook === "onDone" ? ["left"] : []),
    "failed: refused",
    "ended",
    ...(hook === "onValue" ? ["left"] : []),
  ]);
  expect(await passed.next()).toEqual({ done: true, value: undefined });
});

it("a reader that leaves ends the generator as well, and one that never began begins nothing", async () => {
  const { log, count, hooks } = numbers(3);
  for await (const n of passedOn(count, hooks)) if (n === 2) break;
  expect(log).toEqual(["began", "left", "ended"]);

  const never = passedOn(count, hooks);
  await never.return();
  expect(await never.next()).toEqual({ done: true, value: undefined });
  expect(log).toEqual(["began", "left", "ended"]);
});

it("an error that a reader throws into it reaches the generator", async () => {
  const { log, count, hooks } = numbers(3);
  const passed = passedOn(count, hooks);
  await passed.next();
  await expect(passed.throw(new Error("enough"))).rejects.toThrow("enough");
  expect(log).toEqual(["began", "left", "failed: enough", "ended"]);
});
