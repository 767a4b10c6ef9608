import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { abortable } from "./abortable.ts";

it("keeps nothing of what resolved while the signal lives on", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const { signal } = new AbortController();
  const results: WeakRef<Buffer>[] = [];
  const next = async () => Buffer.alloc(1_000_000);
  for (let n = 0; n < 20; n++) results.push(new WeakRef(await abortable(next(), signal)));
  // A WeakRef keeps its target until the job ends that made it.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(signal.aborted).toBe(false);
  expect(results.filter((result) => result.deref() !== undefined).length).toBeLessThanOrEqual(1);
});

it("rejects with the signal's reason, also where it came before", async () => {
  const over = new AbortController();
  const never = new Promise<void>(() => {});
  const waiting = abortable(never, over.signal);
  over.abort(new Error("refused"));
  await expect(waiting).rejects.toThrow("refused");
  await expect(abortable(never, over.signal)).rejects.toThrow("refused");
});
