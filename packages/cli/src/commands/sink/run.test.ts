import { expect, it } from "vitest";
import { jsonObject } from "./command.ts";
import { retriedText } from "./run.ts";

const delivered = { position: "1", outcome: "delivered" as const, status: 200, error: null };
const unsent = { ...delivered, status: null };
const refused = { ...delivered, outcome: "refused" as const, status: 400, error: "answered 400" };
const away = { ...delivered, outcome: "away" as const, status: 503, error: "answered 503" };

it.each([
  ["delivered 2 of 2", [delivered, delivered], 0],
  ["delivered 0 of 6, 5 refused, 1 had nothing to send", [unsent, ...Array(5).fill(refused)], 0],
  ["delivered 1 of 6, 1 refused, 4 wait", [delivered, refused, away], 3],
  ["delivered 0 of 1, 1 waits", [away], 0],
])("a retry of parked events says %j", (text, items, left) => {
  expect(retriedText({ items, left })).toBe(text);
});

it("a template that is no JSON is refused with the place where it breaks", () => {
  expect(jsonObject('{"text": "{{text}}"}')).toEqual({ text: "{{text}}" });
  expect(() => jsonObject('{"text": "{{text}}",}')).toThrow(
    /^Expected a JSON object, such as \{"content": "\{\{text\}\}"\}: .*position 20/,
  );
  expect(() => jsonObject('["{{text}}"]')).toThrow(/^Expected a JSON object, such as \S+ "\S+"\}\.$/);
});
