import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { urlOf } from "../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp, type TestUp } from "../../testing/up.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-left-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const path = installSkaffold(join(cwd, "bin"));
const home = join(cwd, "spill");
const output = join(cwd, "said");
const source = "default/alice/shop/skaffold";

type Session = { readonly session: string; readonly endedAt: string | null };
type Recorded = { readonly channel: string; readonly original?: { readonly bytes: string } };

async function list<Item>({ env }: TestUp, what: string): Promise<readonly Item[]> {
  const response = await fetch(`${env.TAPEDECK_URL}/api/v1/${what}`);
  return ((await response.json()) as { readonly items: readonly Item[] }).items;
}

/** A `tapedeck run` for a Tapedeck that is not there, killed while its command runs; the command writes its file later. */
async function leaveEventLog(gateway: string): Promise<{ readonly note: string; readonly file: string }> {
  const env = {
    PATH: path,
    TAPEDECK_SPILL: home,
    TAPEDECK_URL: urlOf(gateway),
    STAND_IN_RECORDING: recordingFolder("01-dev-success-3-artifacts-5-iterations"),
    STAND_IN_NOW: "1",
    STAND_IN_SAID: output,
    STAND_IN_STDERR: "building\n",
  };
  const names = ["--developer", "alice", "--project", "shop", "--redact", "off"];
  const killed = startCli(["run", ...names, "--", "skaffold", "dev"], { cwd, env });
  await until(() => killed.stderr().includes("building"), { message: "the command to run" });
  killed.child.kill("SIGKILL");
  await until(() => killed.child.signalCode === "SIGKILL", { message: "it to die" });
  const [note = ""] = readdirSync(home).filter((name) => name.endsWith(".events.json"));
  const { command, file } = JSON.parse(readFileSync(join(home, note), "utf8")) as { command: number; file: string };
  process.kill(command, "SIGINT");
  // Its output is the command's, too: both are over.
  expect(await killed.ended).toBe("SIGKILL");
  return { note, file };
}

it("takes the event log file that a killed `run` has left, whole and once, and removes it", async () => {
  writeFileSync(join(cwd, "tapedeck.yaml"), "sources: []\n");
  const port = await ownPort();
  const { note, file } = await leaveEventLog(`127.0.0.1:${port}`);
  expect(readdirSync(home)).toContain(note);
  expect(readFileSync(file, "utf8")).not.toBe("");
  const doctor = startCli(["doctor"], { cwd, env: { TAPEDECK_SPILL: home } });
  await doctor.ended;
  expect(doctor.stdout()).toContain("1 recording waits");

  const up = await startUp({
    cwd,
    args: ["--no-demo"],
    env: { TAPEDECK_GATEWAY_GRPC_PORT: String(port), TAPEDECK_SPILL: home },
  });
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await up.stop()));
  await until(() => readdirSync(home).length === 0, { message: "nothing to wait any more" });
  expect(existsSync(file)).toBe(false);
  const sessions = await until(
    async () => {
      const all = await list<Session>(up, `sessions?source=${source}`);
      return all.length > 0 && all.every(({ endedAt }) => endedAt !== null) ? all : undefined;
    },
    { message: "the session to end" },
  );
  expect(sessions).toHaveLength(1);

  const ofSession = `session=${sessions[0]?.session}&original=true&limit=1000`;
  const events = await list<Recorded>(up, `events?source=${source}&${ofSession}`);
  const frames = events.flatMap(({ channel, original }) => (original ? [`${channel} ${original.bytes}`] : []));
  const lines = readFileSync(output, "utf8").trim().split("\n");
  for (const channel of ["v1", "v2"]) {
    const isOf = (line: string) => line.startsWith(`${channel} `);
    expect(lines.filter(isOf).length).toBeGreaterThan(10);
    expect(frames.filter(isOf)).toEqual(lines.filter(isOf));
  }
});
