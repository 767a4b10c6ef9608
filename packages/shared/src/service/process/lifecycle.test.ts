import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { until } from "../../testing/until.ts";

/** Runs a service as a process of its own; its start is the given source text. */
function run(start: string) {
  const lifecycle = new URL("./lifecycle.ts", import.meta.url);
  const logger = new URL("../logger.ts", import.meta.url);
  const settings = new URL("../settings.ts", import.meta.url);
  const program = `
    const { runService } = await import(${JSON.stringify(lifecycle.href)});
    const { createLogger } = await import(${JSON.stringify(logger.href)});
    const { SettingsError } = await import(${JSON.stringify(settings.href)});
    await runService(createLogger("sample"), async () => { ${start} });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    env: { ...process.env, TAPEDECK_LOG_FORMAT: "json" },
  });
  if (child.stderr === null) throw new Error("no stderr");
  let log = "";
  child.stderr.on("data", (data) => {
    log += data;
  });
  // Not "close": it never comes when the parent has disconnected.
  const ended = Promise.all([once(child, "exit"), once(child.stderr, "end")]).then(([[code]]) => ({
    code,
    lines: log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  }));
  return { child, ended, reported: once(child, "message").then(([message]) => message) };
}

const living = (dispose: string, more = "") => `
  const timer = setInterval(() => {}, 1000);
  return { addresses: { http: "127.0.0.1:1" }, ${more} [Symbol.asyncDispose]: async () => { ${dispose} clearInterval(timer); } };`;

it.each([
  ["SIGTERM", (child: ChildProcess) => child.kill("SIGTERM")],
  ["SIGINT", (child: ChildProcess) => child.kill("SIGINT")],
  ["the end of its parent", (child: ChildProcess) => child.disconnect()],
])("a service reports that it is ready, and %s stops it cleanly", async (_title, stop) => {
  const { child, ended, reported } = run(living(""));
  expect(await reported).toEqual({ type: "ready", addresses: { http: "127.0.0.1:1" } });
  stop(child);
  const { code, lines } = await ended;
  expect(code).toBe(0);
  expect(lines.map(({ service, msg }) => [service, msg])).toEqual([
    ["sample", "ready"],
    ["sample", "stopping"],
  ]);
});

it("a second signal ends a service at once", async () => {
  const { child, ended, reported } = run(living("process.send('stopping'); await new Promise(() => {});"));
  await reported;
  const stopping = once(child, "message");
  child.kill("SIGINT");
  await stopping;
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
});

it("a service that cannot start says why and exits with 1", async () => {
  const { ended, reported } = run('throw new SettingsError(["TAPEDECK_X: \\"y\\" is not a port"]);');
  expect(await reported).toMatchObject({ type: "failed" });
  const { code, lines } = await ended;
  expect(code).toBe(1);
  expect(lines[0]).toMatchObject({ level: 60, msg: 'a setting is wrong:\n  TAPEDECK_X: "y" is not a port' });
});

it("a service that cannot continue says why, stops cleanly and exits with 1", async () => {
  const failed = 'failed: once(process, "message").then(() => { throw new Error("the log was replaced"); }),';
  const { child, ended, reported } = run(`
    const { once } = await import("node:events");
    ${living('process.send("stopped");', failed)}`);
  const all: unknown[] = [];
  child.on("message", (message) => all.push(message));
  await reported;
  child.send("fail");
  const { code, lines } = await ended;
  expect(code).toBe(1);
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [30, "ready"],
    [60, "the log was replaced"],
    [30, "stopping"],
  ]);
  // What it has sent may come after its end.
  await until(() => all.length === 3, { message: "its last words" });
  expect(all.slice(1)).toEqual([{ type: "failed", message: "the log was replaced" }, "stopped"]);
});
