import { describe, expect, it } from "vitest";
import { isLoopback } from "./loopback.ts";

describe("isLoopback", () => {
  it.each(["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])("accepts %s", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each(["", "0.0.0.0", "::", "[::]", "128.0.0.1", "127.0.0.1.example.com", "localhost.example.com", "127.0.0.1:80"])(
    "refuses %j",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});
