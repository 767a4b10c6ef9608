import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { expect, it } from "vitest";

/** Runs a command whose stderr passes through us, and ends with its code. The command writes more than a pipe holds. */
const program = `
  import { PassThrough } from "node:stream";
  const { startCommand } = await import(${JSON.stringify(new URL("./command-process.ts", import.meta.url).href)});
  const ran = await startCommand(["sh", "-c", "head -c 1000000 /dev/zero >&2; exit 7"], process.env, new PassThrough());
  process.exit((await ran.exited).code);`;

it.each(["full", "closed"])("the command goes on where its stderr can't be passed on: %s", async (what) => {
  const full = what === "full" ? openSync("/dev/full", "w") : undefined;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "ignore", full ?? "pipe"],
  });
  if (full === undefined) child.stderr?.destroy();
  else closeSync(full);
  expect((await once(child, "exit"))[0]).toBe(7);
});
