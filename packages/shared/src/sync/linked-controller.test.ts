import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { LinkedController } from "./linked-controller.ts";

it("aborts with its signal, also where that came before, and after its time", async () => {
  const outer = new AbortController();
  using linked = new LinkedController(outer.signal);
  outer.abort("over");
  using later = new LinkedController(outer.signal, 3_600_000);
  expect([linked.signal.reason, later.signal.reason]).toEqual(["over", "over"]);
  using timed = new LinkedController(new AbortController().signal, 1);
  await new Promise((resolve) => timed.signal.addEventListener("abort", resolve));
  expect(timed.signal.reason).toMatchObject({ name: "TimeoutError" });
});

it("leaves nothing on a signal that lives on", () => {
  const outer = new AbortController();
  for (let n = 0; n < 20; n++) {
    using linked = new LinkedController(outer.signal, 3_600_000);
    expect(getEventListeners(outer.signal, "abort")).toHaveLength(1);
    linked.abort();
    expect(outer.signal.aborted).toBe(false);
  }
  expect(getEventListeners(outer.signal, "abort")).toHaveLength(0);
});
