import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startServers } from "../../local-server/servers.ts";
import { startCli } from "../../testing/cli.ts";
import { recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp } from "../../testing/up.ts";
import { mendFullDisk, ReportedDisk } from "./full-disk.ts";

class CountedDisk extends ReportedDisk {
  checks = 0;

  override get isFull(): boolean {
    this.checks++;
    return super.isFull;
  }

  override set isFull(isFull: boolean) {
    super.isFull = isFull;
  }
}

it.each([
  ["room again", 1, 1],
  ["no room yet", Number.MAX_SAFE_INTEGER, 0],
])("a NATS to which the disk was full is started again when there is room: %s", async (_, roomBytes, restarts) => {
  const disk = new CountedDisk();
  const stop = new AbortController();
  const output: string[] = [];
  let restarted = 0;
  const mending = mendFullDisk({
    disk,
    folder: tmpdir(),
    pollMs: 5,
    settleMs: 0,
    roomBytes,
    nats: {
      async restart() {
        restarted++;
        disk.isFull = false;
      },
    },
    printLine: (line) => output.push(line),
    signal: stop.signal,
  });
  await until(() => disk.checks > 0, { message: "the first check" });
  disk.isFull = true;
  await until(() => (restarts === 1 ? output.length === 2 : disk.checks > 6), {
    message: "the restart, or more checks",
  });
  stop.abort();
  await mending;
  expect(restarted).toBe(restarts);
  expect(output[0]).toContain("the log's disk is full");
  expect(output.slice(1)).toEqual(restarts === 1 ? ["recording resumes"] : []);
});

it("a NATS that takes nothing though it was started again is not started once more, but in the next full disk", async () => {
  const disk = new CountedDisk();
  const stop = new AbortController();
  let restarted = 0;
  const mending = mendFullDisk({
    disk,
    folder: tmpdir(),
    pollMs: 5,
    settleMs: 0,
    roomBytes: 1,
    nats: { restart: async () => void restarted++ },
    printLine: () => {},
    signal: stop.signal,
  });
  const someChecks = () => {
    const before = disk.checks;
    return until(() => disk.checks > before + 5, { message: "some checks" });
  };
  disk.isFull = true;
  await someChecks();
  expect(restarted).toBe(1);
  const before = disk.checks;
  disk.isFull = false;
  await until(() => disk.checks > before, { message: "a check" });
  disk.isFull = true;
  await someChecks();
  stop.abort();
  await mending;
  expect(restarted).toBe(2);
});

it("a disk is not checked before it is reported as full", async () => {
  const [well, full] = [new CountedDisk(), new CountedDisk()];
  full.isFull = true;
  const stop = new AbortController();
  const { signal } = stop;
  const nats = { restart: async () => {} };
  const mending = [well, full].map((disk) =>
    mendFullDisk({ disk, nats, folder: tmpdir(), pollMs: 5, settleMs: 0, printLine: () => {}, signal }),
  );
  await until(() => full.checks > 20, { message: "many checks of the full disk" });
  expect(well.checks).toBe(1);
  stop.abort();
  await Promise.all(mending);
});

it("the restart is another server at the same port, and no message says that one has died", async () => {
  const storeDir = mkdtempSync(join(tmpdir(), "tapedeck-restart-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(storeDir, { recursive: true, force: true }));
  const output: string[] = [];
  const { nats = expect.fail() } = await startServers({
    storeDir,
    secrets: await loadSecrets(join(storeDir, "secrets")),
    nats: { port: 0 },
    postgres: undefined,
    printLine: (line) => output.push(line),
  });
  stack.use(nats);
  const { pid, port } = nats.current();
  await nats.restart();
  await until(() => nats.current().pid !== pid, { message: "another server" });
  expect([nats.current().port, output]).toEqual([port, []]);
});

/** Runs a program with a disk of 320 MiB in a folder, which nobody else sees: on Linux, where that is allowed. */
const ownDisk = (folder: string) => [
  ...["unshare", "--map-root-user", "--mount", "sh", "-c"],
  ...['mount -t tmpfs -o size=320m none "$0" && exec "$@"', folder],
];
const [unshare = "", ...words] = [...ownDisk("/mnt"), "true"];
const mayHaveDisk = spawnSync(unshare, words).status === 0;

/** Takes all the room that is left. */
function fill(file: string): void {
  const { bavail, bsize } = statfsSync(dirname(file));
  try {
    writeFileSync(file, Buffer.alloc(bavail * bsize));
  } catch (cause) {
    // Somebody else has written meanwhile.
    if (!(cause instanceof Error && "code" in cause && cause.code === "ENOSPC")) throw cause;
  }
}

it.skipIf(!mayHaveDisk)(
  "`up` says that its disk is full, and goes on by itself with all that waited when there is room",
  async () => {
    const recording = loadRecording(recordingFolder("01-dev-success-3-artifacts-5-iterations"));
    const cwd = mkdtempSync(join(tmpdir(), "tapedeck-full-"));
    const data = join(cwd, ".tapedeck");
    mkdirSync(data);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rmSync(cwd, { recursive: true, force: true }));
    const fake = stack.use(await startFakeSkaffold({ recording }));
    // On another disk.
    const { url } = stack.use(await freshDatabase());
    const up = await startUp({
      cwd,
      args: ["--skaffold", fake.address, "--developer", "alice", "--project", "shop"],
      env: { TAPEDECK_POSTGRES_URL: url },
      within: ownDisk(data),
    });
    stack.use(up.cli);
    const much = join(`/proc/${up.running.pid}/root`, data, "of-somebody-else");
    const http = `http://${up.running.addresses.http}`;
    const ready = async () => {
      const answer = await fetch(`${http}/readyz`);
      return { status: answer.status, body: await answer.text() };
    };
    const frames = async () => {
      const answer = await fetch(`${http}/api/v1/events?after=start&limit=1000&original=true`);
      const { items } = (await answer.json()) as { items: { channel: string; original?: { bytes: string } }[] };
      return items.flatMap(({ channel, original }) => (channel === "v1" && original ? [original.bytes] : []));
    };
    const all = recording.messages.v1.map(({ bytes }) => bytes.toString("base64"));

    await fake.playUntil({ v1: 10 });
    await until(async () => (await frames()).length === 10, { message: "the first to be recorded" });
    expect((await ready()).status).toBe(200);
    fill(much);
    await fake.play();
    const full = "nothing is recorded: the log's disk is full";
    await until(
      async () => {
        const { status, body } = await ready();
        return status === 503 && body.includes(full);
      },
      { message: "the gateway not to be ready, and to say why" },
    );
    await using status = startCli(["status"], { cwd, env: up.env });
    await status.ended;
    expect(status.stdout()).toContain(`gateway: ${full}`);
    const output = () => up.cli.stdout().split("\n");
    await until(() => output().includes(`${full}; free some space, and recording resumes`), {
      message: "`up` to say it",
    });
    expect((await frames()).length).toBeLessThan(all.length);

    rmSync(much);
    await until(() => output().includes("recording resumes"), { message: "`up` to go on" });
    await until(async () => (await frames()).length === all.length, { message: "what waited to be recorded" });
    expect(await frames()).toEqual(all);
    await until(async () => (await ready()).status === 200, { message: "all to be well" });
    expect(output()).not.toContain("NATS exited unexpectedly and is restarted");
    expect(await up.stop()).toBe(0);
  },
);
