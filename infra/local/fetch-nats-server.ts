import { fileURLToPath } from "node:url";
import { LocalServerError } from "./local-server-error.ts";
import { findNatsServer } from "./nats-binary.ts";

// Run by bootstrap.mjs: a start or a test run should not find out in the middle that nats-server is missing.
try {
  await findNatsServer({ bin: fileURLToPath(new URL("../../.tapedeck/bin", import.meta.url)), log: console.log });
} catch (error) {
  if (!(error instanceof LocalServerError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
