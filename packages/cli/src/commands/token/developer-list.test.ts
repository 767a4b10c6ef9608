import { expect, it } from "vitest";
import { developersIn } from "./developer-list.ts";

it("names a developer a line, and what the token is called if not that", () => {
  const list = "# team\nalice\n\nbob  Bob's laptop\r\ncarol-2";
  expect(developersIn(list)).toEqual([
    { developer: "alice", name: "alice" },
    { developer: "bob", name: "Bob's laptop" },
    { developer: "carol-2", name: "carol-2" },
  ]);
});

it("says of each line what is wrong, before anything is created", () => {
  expect(() => developersIn("alice\nAlice.B\nbob\nalice")).toThrow(
    'no token was created: line 2: "Alice.B" is not 1–64 bytes of lower-case letters of any language, digits, _ and -; write alice-b; line 4: "alice" is listed twice.',
  );
  expect(() => developersIn("alice\nbob Bob (sso.example)\nmachine")).toThrow(
    /line 2: the name "Bob \(sso.example\)" ends with a parenthesis.*; line 3: the name "machine" begins with "machine"/,
  );
  expect(() => developersIn("# nobody\n")).toThrow("the list is empty");
});
