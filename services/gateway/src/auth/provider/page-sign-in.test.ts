import { expect, it } from "vitest";
import { ownPath } from "./page-sign-in.ts";

const origin = "https://tapedeck.example:7052";

it.each([
  ["/", "/"],
  ["/sessions/01A?at=3-4", "/sessions/01A?at=3-4"],
  ["/loops/acme%2Falice", "/loops/acme%2Falice"],
])("after signing in it goes on at %s", (to, path) => {
  expect(ownPath(to, origin)).toBe(path);
});

it.each([
  "https://evil.example/",
  "//evil.example/",
  "///evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "/\t/evil.example",
  "/%09/../..//evil.example",
  "/.//evil.example",
  "/x/..//evil.example/",
  "javascript:alert(1)",
  "data:text/html,x",
  "sessions",
  "",
  "/api/v1/sign-in/provider?to=/",
  "/API/docs",
  "//api",
])("it never goes on at another host, nor at the API: %j", (to) => {
  const left = new URL(origin + ownPath(to, origin));
  expect(left.origin).toBe(origin);
  expect(ownPath(to, origin)).not.toMatch(/^\/[/\\]|^\/api/i);
});
