import { expect, it } from "vitest";
import { until } from "./until.ts";

it("until() returns what the condition returns in the end", async () => {
  const answers = [undefined, null, false, 0];
  expect(await until(() => answers.shift(), { message: "a number" })).toBe(0);
});

it("a condition may throw until it holds", async () => {
  let calls = 0;
  const condition = () => {
    calls += 1;
    expect(calls).toBe(3);
    return true;
  };
  expect(await until(condition, { message: "the third time" })).toBe(true);
});

it("until() gives up with what it waited for and the last reason", async () => {
  const soonMs = 10;
  const waiting = until(() => Promise.reject(new Error("not yet")), { message: "Godot", deadlineMs: soonMs });
  await expect(waiting).rejects.toThrow(/Godot/);
  await expect(waiting).rejects.toMatchObject({ cause: { message: "not yet" } });
});

it("an aborted signal ends until()", async () => {
  const controller = new AbortController();
  const waiting = until(() => undefined, { message: "nothing", signal: controller.signal });
  controller.abort();
  await expect(waiting).rejects.toThrow(/abort/i);
});

it("a condition that takes long is asked less often", async () => {
  const looks: { since: number; to: number }[] = [];
  const condition = () => {
    const since = performance.now();
    while (performance.now() < since + 100);
    looks.push({ since, to: performance.now() });
    return looks.length === 3;
  };
  await until(condition, { message: "the third look" });
  const pauses = looks.slice(1).map(({ since }, index) => since - (looks[index]?.to ?? 0));
  expect(pauses.every((pause) => pause > 150)).toBe(true);
});
