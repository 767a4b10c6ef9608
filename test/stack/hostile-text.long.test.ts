import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rktHost, rktSession } from "@tapedeck/query/testing/rkt-scenario";
import { scenario } from "@tapedeck/query/testing/scenario";
import { vagrantSession, vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { until } from "@tapedeck/shared/testing/until";
import { allCommands } from "tapedeck/commands/all";
import { collect, startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

// What was recorded is printed by every command that reads. None of it may reach the terminal as it is.

const esc = "\u001b";
const title = `${esc}]0;x\u0007`;
/** Sets the title and the clipboard, clears the screen, hides and colours what follows, and turns it around. */
const hostile = (name: string) =>
  `${name}${title}${esc}]52;c;aGk=${esc}\\${esc}[2J${esc}[8m${esc}[31m\u009b2J\u009d52;c;aGk=\u009c\u0085\b\u202e\u2066\u200fend`;
const colours = new RegExp(`${esc}\\[(?:[0-79]|2[0-9]|3[0-79])?m`, "g");
/** What a terminal obeys, except for lines, tabs and, where they are allowed, some colours. */
const obeyed = (text: string, allowed: RegExp | string = "") =>
  text
    .replace(/\r?\n|\t/g, "")
    .replaceAll(allowed, "")
    .match(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu) ?? [];

const main = fileURLToPath(new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), "hostile-"));
const cleanup = new AsyncDisposableStack();
let seeded: SeededStack;
const sessions = { skaffold: "01KE3M9Z6Q4W8T2V5X7Y9A1B3C", rkt: "01KE3M9Z6Q4W8T2V5X7Y9A1B3D" };
const vagrant = "01KE3M9Z6Q4W8T2V5X7Y9A1B3E";

function skaffoldEvents() {
  const script = scenario();
  const one = script.session(sessions.skaffold);
  one.started({ [hostile("label")]: hostile("value"), "git.branch": hostile("branch") });
  one.adopted({ [hostile("artifact")]: "Not Started" });
  one.configured();
  for (const verb of ["succeeded", "failed"] as const) {
    one.loopStarted();
    one.build(hostile("artifact"), "started");
    const error = {
      code: hostile("CODE"),
      message: hostile("message"),
      suggestions: [hostile("do")],
    };
    const summary = hostile("summary");
    one.build(hostile("artifact"), verb, undefined, verb === "failed" ? { error, summary } : { summary });
    one.resource(hostile("deployment/web"), "pending");
    one.text(`${hostile("line")}\n`);
    one.loopEnded(verb, undefined, error);
  }
  one.ended(hostile("reason"));
  return script.events;
}

function hostEvents() {
  const script = scenario(rktHost);
  const host = rktSession(sessions.rkt, script);
  host.began(hostile("/var/lib/rkt"));
  for (const pod of [hostile("pod-1"), hostile("pod-2")]) {
    host.prepared(pod, [hostile("app")]);
    host.started(pod);
    host.text(pod, `${hostile("line")}\n`);
  }
  host.exited(hostile("pod-2"), [2]);
  host.imported({ id: hostile("sha512-1"), name: hostile("example.com/web"), version: hostile("1.0") });
  host.described("pods");
  host.described("images");
  return script.events;
}

function serverEvents() {
  const script = scenario(vagrantShop);
  const server = vagrantSession(vagrant, script);
  server.began(hostile("2.3"));
  for (const job of [hostile("job-1"), hostile("job-2")]) {
    server.queued(job, hostile("up"), {}, { id: hostile("T1"), name: hostile("web") });
    server.assigned(job);
    server.started(job);
    server.text(job, `${hostile("line")}\n`);
  }
  server.finished(hostile("job-1"), 3);
  return script.events;
}

beforeAll(async () => {
  seeded = cleanup.use(await startSeededStack());
  for (const events of [skaffoldEvents(), hostEvents(), serverEvents()]) await seeded.seed(events);
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(cwd, { recursive: true, force: true });
});

const env = () => ({
  TAPEDECK_URL: `http://${seeded.stack.http}`,
  TAPEDECK_GRPC_PORT: seeded.stack.grpc.split(":").at(-1),
  TAPEDECK_DATA: join(cwd, "data"),
  XDG_STATE_HOME: cwd,
});

const sources = ["alice/shop", "node1/host", "alice/shop/vagrant"];
const each = (...words: string[]) => sources.map((source) => [...words, "-s", source]);
/** An output of a failed step. */
const failed = join(cwd, "failed.txt");
writeFileSync(failed, `${hostile("src/web.ts")}(3,10): error TS2304: Cannot find name '${hostile("name")}'.\n`);
/** Commands that end by themselves, with all that they print. */
const reading: readonly (readonly string[])[] = [
  ["status"],
  ...each("state"),
  ...each("state", "--json"),
  ...each("logs"),
  ...each("logs", "--json"),
  ["logs", "-s", hostile("nobody")],
  ...each("tail", "--no-follow", "--all", "--after", "start"),
  ...each("tail", "--no-follow", "--all", "--after", "start", "--json"),
  ["tail", "--no-follow", "-n", "100"],
  ...each("sessions"),
  ["sessions", "--json"],
  ["loops"],
  ["loops", "--json"],
  ["why"],
  ["why", "--json"],
  ["why", hostile("nothing")],
  ["why", "-s", "alice/shop"],
  ["why", `alice/shop#${hostile("1")}`],
  ["logs", "alice/shop", "--failed", "-t"],
  ["search"],
  ["search", "--json"],
  ["search", hostile("nothing")],
  ["explain", failed],
  ["explain", failed, "--json"],
  ["explain", hostile("file")],
  ["compare", `${sessions.skaffold}:1`, `${sessions.skaffold}:2`],
  ["export", "--parquet", join(cwd, "tables"), "--from", "2026-11-20", "--to", "2026-11-20"],
  ["export", "--parquet", hostile(join(cwd, "tables")), "--from", hostile("2026-11-20")],
  ["compare", hostile("left"), hostile("right")],
  ...["builds", "loops", "commands", "failures"].flatMap((kind) => [
    ["stats", kind],
    ["stats", kind, "--json"],
  ]),
  ["wait", "--for", "build.failed", "--after", "start"],
  ["wait", "--for", "build.failed", "--after", "start", "--json"],
  ["wait", "--for", hostile("build.failed")],
  ["export", sessions.skaffold],
  ["export", sessions.rkt],
  ["export", hostile("nothing")],
  ["import", hostile("file")],
  ["open", "-s", hostile("nobody/shop")],
  ["doctor"],
  ["doctor", "--json"],
  ["audit"],
  ["token", "list"],
  ["token", "revoke", hostile("nobody")],
  ["context"],
  ["context", hostile("nowhere")],
  ["login", `http://127.0.0.1:1/${hostile("x")}`],
  ["logout", hostile("nowhere")],
  ["completion", "bash"],
  ["erase", "--session", hostile("nothing"), "--yes"],
  ["replay", hostile("nothing")],
  ["run", "--", hostile("no-such-program")],
  ["record", "--upstream", hostile("nothing")],
  ["backup", hostile("folder")],
  ["restore", hostile("folder")],
  ["rebuild", hostile("extra")],
  ["new-epoch", hostile("extra")],
  ["uninstall", hostile("extra")],
  ["sql-role", "drop", hostile("nobody")],
  ["workspace", "list"],
  ["workspace", "list", "--json"],
  ["workspace", "show", hostile("nobody")],
  ["workspace", "remove", hostile("nobody"), "--yes"],
  ["sink", "list"],
  ["sink", "list", "--json"],
  ["sink", "test", hostile("nobody")],
  ["sink", "parked", hostile("nobody")],
  ["mcp", hostile("extra")],
  ["up", hostile("extra")],
  ["watch", hostile("extra")],
  [hostile("no-such-command")],
];

it("has every command in it", async () => {
  const names = (await allCommands()).map((command) => command.name());
  expect(names.filter((name) => !reading.some(([word]) => word === name))).toEqual([]);
});

it.each(reading)("prints nothing of it into a pipe: %j", async (...words) => {
  await using cli = startCli(words.filter(Boolean), { cwd, env: env() });
  await cli.ended;
  const out = `${cli.stdout()}${cli.stderr()}`;
  expect(obeyed(out)).toEqual([]);
  expect(out.length).toBeGreaterThan(0);
  if (words.includes("--json") && cli.stdout() !== "")
    for (const line of cli.stdout().trim().split("\n")) JSON.parse(line);
});

const hasScript = spawnSync("script", ["--version"]).status === 0;

describe.skipIf(!hasScript)("in a terminal", () => {
  function inTerminal(words: readonly string[], settings: Record<string, string | undefined>) {
    const file = join(cwd, "command.mjs");
    // A shell would have to quote what is hostile.
    writeFileSync(
      file,
      `import { spawnSync } from "node:child_process";
       const { status } = spawnSync(process.execPath, ${JSON.stringify([main, ...words])}, { stdio: "inherit" });
       process.exit(status ?? 1);`,
    );
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
    const shell = `stty cols 200 rows 50 -onlcr; exec "${process.execPath}" "${file}"`;
    return collect(
      spawn("script", ["-qec", shell, "/dev/null"], {
        cwd,
        env: {
          PATH,
          HOME,
          NODE_COMPILE_CACHE,
          XDG_CONFIG_HOME: join(cwd, "config"),
          TERM: "xterm-256color",
          ...settings,
        },
        stdio: "pipe",
      }),
    );
  }
  const shown = reading.filter(([name]) =>
    ["status", "state", "logs", "tail", "sessions", "why", "wait"].includes(name ?? ""),
  );

  it.each(shown)("colours are ours alone: %j", async (...words) => {
    await using cli = inTerminal(words.filter(Boolean), env());
    await cli.ended;
    expect(obeyed(cli.stdout(), colours)).toEqual([]);
    // Recorded in front of each end.
    expect(cli.stdout()).not.toContain("[31mend");
    expect(cli.stdout().length).toBeGreaterThan(0);
  });

  it("`watch` draws with its own sequences alone, and into a pipe with none", async () => {
    await using drawn = inTerminal(["watch"], env());
    await until(() => drawn.stdout().includes("alice/shop"), { message: "the first drawing" });
    drawn.child.stdin?.write("q");
    await drawn.ended;
    // Its own: colours, the cursor, and the other screen.
    const own = new RegExp(`${esc}\\[(?:[?][0-9]+[hl]|[0-9]*[A-HJKG]|[0-9]{0,2}m)`, "g");
    expect(obeyed(drawn.stdout(), own)).toEqual([]);
    expect(drawn.stdout()).not.toContain(`${esc}[8m`);
    await using piped = startCli(["watch"], { cwd, env: env() });
    await until(() => piped.stdout().includes("alice/shop"), { message: "the first line" });
    expect(obeyed(piped.stdout())).toEqual([]);
  });
});

describe("output that can't be written", () => {
  const start = (words: readonly string[], stdio: "full" | "closed") => {
    const full = stdio === "full" ? openSync("/dev/full", "w") : undefined;
    const child = spawn(process.execPath, [main, ...words], {
      cwd,
      env: { ...process.env, XDG_CONFIG_HOME: join(cwd, "config"), ...env() },
      stdio: ["ignore", full ?? "pipe", "pipe"],
    });
    if (full === undefined) child.stdout?.destroy();
    else closeSync(full);
    return collect(child);
  };

  it.each([
    ["status"],
    ["tail", "--no-follow"],
    ["sessions", "--json"],
    ["--version"],
    ["help"],
    ["export", sessions.skaffold],
  ])("a full disk is said, and a reader that has left is not: %s", async (...words) => {
    await using full = start(words, "full");
    expect(await full.ended).toBe(1);
    expect(full.stderr()).toMatch(/^tapedeck: .*(no space left|disk is full)/);
    await using left = start(words, "closed");
    expect([await left.ended, left.stderr()]).toEqual([0, ""]);
  });

  it("a recorded command is not changed by it", async () => {
    const script = "printf out; printf err >&2; exit 7";
    for (const redirected of ["2>/dev/full", "2>&-", ">&-"]) {
      const shell = `{ "${process.execPath}" "${main}" run -- sh -c '${script}'; echo $? >code; } ${redirected}; cat code`;
      const ran = spawnSync("sh", ["-c", shell], { cwd, env: { ...process.env, ...env() } });
      expect(ran.stdout.toString(), redirected).toMatch(/7\n$/);
    }
  });
});
