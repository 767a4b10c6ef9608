import { status } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { refusalIn } from "./refusal.ts";

const failed = (code: number, details: string) => Object.assign(new Error(`${code} ${details}`), { code, details });

it("is what the recorder said, however deep", () => {
  const refused = failed(status.INVALID_ARGUMENT, "developer is empty");
  expect(refusalIn({ err: refused })).toBe("developer is empty");
  expect(refusalIn({ err: new Error("the push ended", { cause: refused }) })).toBe("developer is empty");
});

it.each([
  failed(status.UNAVAILABLE, "No connection established. Last error: ECONNREFUSED"),
  failed(status.CANCELLED, "Call cancelled"),
  new Error("no code"),
])("is nothing of $message", (err) => {
  expect(refusalIn({ err })).toBeUndefined();
});
