import { spawn } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../testing/temporary-folder.ts";
import { until } from "../../testing/until.ts";

const program = `
import { tellSystemd } from ${JSON.stringify(join(import.meta.dirname, "systemd.ts"))};
const supervised = tellSystemd();
process.once("SIGTERM", () => { supervised.stopping(); setTimeout(() => process.exit(0), 200); });
setInterval(() => {}, 1_000);
`;

/** A process that is ready, with a systemd-notify that writes down its notifications. */
async function startReady(folder: string, env: Readonly<Record<string, string>>) {
  const output = join(folder, "said");
  await writeFile(output, "");
  const notify = join(folder, "systemd-notify");
  await writeFile(notify, `#!/bin/sh\necho "$@" >> ${output}\n`);
  await chmod(notify, 0o755);
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, ...env, PATH: `${folder}${delimiter}${process.env.PATH}` },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return { child, ended, said: async () => (await readFile(output, "utf8")).split("\n").slice(0, -1) };
}

it("systemd is notified that the service is ready, that it lives, and that it stops", async () => {
  await using temporary = await temporaryFolder();
  const {
    child,
    ended,
    said: output,
  } = await startReady(temporary.folder, {
    NOTIFY_SOCKET: "/run/nobody",
    WATCHDOG_USEC: "100000",
  });
  await until(async () => (await output()).filter((line) => line === "WATCHDOG=1").length > 2, {
    message: "signs of life",
  });
  child.kill("SIGTERM");
  await ended;
  const lines = await output();
  expect(lines[0]).toBe("--ready --status=ready");
  expect(lines).toContain("STOPPING=1 --status=stopping");
});

it("without systemd nothing is notified", async () => {
  await using temporary = await temporaryFolder();
  const { child, ended, said: output } = await startReady(temporary.folder, { NOTIFY_SOCKET: "" });
  child.kill("SIGTERM");
  await ended;
  expect(await output()).toEqual([]);
});
