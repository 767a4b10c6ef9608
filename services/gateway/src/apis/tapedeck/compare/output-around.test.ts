import type { EventJson } from "@tapedeck/shared/events/json";
import { expect, it } from "vitest";
import { outputAround } from "./output-around.ts";

const printed = (text: string) => ({ position: "p", channel: "logs", detail: { text } }) as unknown as EventJson;

it("finds the cause in a line that quotes it", () => {
  const text = 'building\n - stderr: "no artifact \\"web\\"\\n"\nstopped\n';
  const written = [printed(text)];
  expect(outputAround(written, 'no artifact "web"').map(({ isCause }) => isCause)).toEqual([false, true, false]);
});

it("a line that is too long is cut, and says so", () => {
  const [own, next] = outputAround([printed(`broken\n${"x".repeat(301)}\n`)], "broken");
  expect([own?.value, next?.value]).toEqual(["broken", `${"x".repeat(300)}…`]);
});
