import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { ownPort } from "./own-port.ts";

it("gives each port once, whether anything listens there or not", async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, ownPort));
  expect(new Set(ports).size).toBe(ports.length);
});

it("gives no port of another process that has not ended", async () => {
  const port = await ownPort();
  const bind = `require("node:dgram").createSocket("udp4").on("error", (error) => console.log(error.code)).bind(${port}, "127.0.0.1")`;
  expect(execFileSync(process.execPath, ["-e", bind], { encoding: "utf8" })).toBe("EADDRINUSE\n");
});
