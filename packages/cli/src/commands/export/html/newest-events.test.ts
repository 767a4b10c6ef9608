import type { TapedeckEvent } from "@tapedeck/client";
import { expect, it } from "vitest";
import { NewestEvents } from "./newest-events.ts";

const event = (position: string, summary = "") => ({ position, summary }) as TapedeckEvent;
const positions = (events: readonly TapedeckEvent[]) => events.map(({ position }) => position);

it("keeps the newest events, in order, and counts all", () => {
  const newest = new NewestEvents(3, 1_000);
  for (let index = 0; index < 10; index++) newest.add(event(`${index}`));
  expect([newest.count, positions(newest.events)]).toEqual([10, ["7", "8", "9"]]);
  newest.add(event("a"));
  expect([newest.count, positions(newest.events)]).toEqual([11, ["8", "9", "a"]]);
});

it("keeps fewer where they are large, and one however large it is", () => {
  const newest = new NewestEvents(100, 1_000);
  for (let index = 0; index < 10; index++) newest.add(event(`${index}`, "x".repeat(400)));
  expect(positions(newest.events)).toEqual(["8", "9"]);
  newest.add(event("a", "x".repeat(2_000)));
  expect(positions(newest.events)).toEqual(["a"]);
});
