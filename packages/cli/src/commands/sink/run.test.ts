import { expect, it } from "vitest";
import { retriedText } from "./run.ts";

const delivered = { position: "1", accepted: true, status: 200, error: null };
const unsent = { ...delivered, status: null };
const refused = { ...delivered, accepted: false, status: 400, error: "answered 400" };

it.each([
  ["delivered 2 of 2", [delivered, delivered], 0],
  ["delivered 0 of 6, 5 refused, 1 had nothing to send", [unsent, ...Array(5).fill(refused)], 0],
  ["delivered 1 of 5, 1 refused, 3 not tried", [delivered, refused], 3],
])("a retry of parked events says %j", (text, items, left) => {
  expect(retriedText({ items, left })).toBe(text);
});
