import { TapedeckError } from "@tapedeck/client";
import { expect, it } from "vitest";
import { refusalText } from "./refusal.ts";

it.each([
  [
    { code: "limit_exceeded", message: "more than 50 requests in a second: wait before the next request" },
    3,
    "Tapedeck is asked too much right now. Try again in 3 seconds.",
  ],
  [
    { code: "limit_exceeded", message: "more than 10000 groups: narrow the request" },
    undefined,
    "That is too much for one answer. Choose a shorter time, or one developer or project.",
  ],
  [
    { code: "not_ready", message: "the log can't be reached" },
    1,
    "Tapedeck is not ready for this yet. Try again in a moment.",
  ],
  [
    { code: "out_of_range", message: "position 1-a is no longer available", earliest: "2-a" },
    undefined,
    "What was recorded then is no longer kept. Choose a later time.",
  ],
  [
    { code: "unknown_source", message: 'no source "nobody/shop" has been recorded: GET /api/v1/sources lists' },
    undefined,
    'No source "nobody/shop" has been recorded. Health lists those that were.',
  ],
  [
    { code: "ambiguous_source", message: "name one", choices: ["a/b/c/d", "a/b/c/e"] },
    undefined,
    "More than one source has this name. Choose one of a/b/c/d, a/b/c/e.",
  ],
  [
    { code: "forbidden", message: "this needs a token with the role admin" },
    undefined,
    "This needs a token with the role admin. Whoever runs Tapedeck can give you another token.",
  ],
  [
    { code: "not_found", message: "session 01A has no loop 9 of runner 1" },
    undefined,
    "Session 01A has no loop 9 of runner 1.",
  ],
  [{ code: "made_up_later", message: "something new" }, undefined, "Something new."],
])("%j reads as sentences that say what to do", (body, retryAfter, text) => {
  expect(refusalText(new TapedeckError(body, retryAfter))).toBe(text);
});

it("an answer that is no refusal of Tapedeck is a sentence, too", () => {
  expect(refusalText(new Error("this comparison is not in the file."))).toBe("This comparison is not in the file.");
  expect(refusalText("no")).toBe("No.");
});
