import { expect, it } from "vitest";
import { tokenSeal } from "./sealed-token.ts";

const token = "tdk_secret";

it("opens what a gateway with the same key has sealed", () => {
  expect(tokenSeal("key").open(tokenSeal("key").seal(token))).toBe(token);
});

it("hides the token, and never seals it in the same way twice", () => {
  const { seal } = tokenSeal("key");
  expect(Buffer.from(seal(token), "base64url").toString("latin1")).not.toContain("secret");
  expect(seal(token)).not.toBe(seal(token));
});

it("opens nothing that was changed, sealed with another key, or never sealed", () => {
  const sealed = Buffer.from(tokenSeal("key").seal(token), "base64url");
  sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
  const { open } = tokenSeal("key");
  for (const text of [sealed.toString("base64url"), tokenSeal("other").seal(token), token, ""]) {
    expect(open(text)).toBeUndefined();
  }
});
