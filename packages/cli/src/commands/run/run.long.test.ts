import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { delay } from "@tapedeck/shared/sync/delay";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { startRecorder, urlOf } from "../../testing/recorder.ts";
import { build, framesOf, messagesOf, nobody, projects, reported } from "./testing/projects.ts";

const project = projects();

/** What stands there about the event log file of the command that runs. */
function noteIn(spill: string) {
  const [note = ""] = readdirSync(spill).filter((name) => name.endsWith(".events.json"));
  const read = JSON.parse(readFileSync(join(spill, note), "utf8")) as { command: number; file: string };
  return { note, ...read };
}

describe("tapedeck run", () => {
  it("goes on under another name when another tap has the source, and says so in one line", async () => {
    await using recorder = await startRecorder({ taken: ["shop", "shop-2"] });
    const { cwd, env } = project();
    const cli = startCli(["run", "--url", recorder.url, "--", "skaffold", "dev"], { cwd, env });
    await until(() => recorder.hellos.length > 0, { message: "a name that is free" });
    await until(() => reported(cli.stdout()).length > 0, { message: "the command to run" });
    process.kill(cli.child.pid ?? 0, "SIGINT");
    expect(await cli.ended).toBe(0);
    expect(recorder.hellos.map(({ project: name }) => name)).toEqual(["shop-3"]);
    expect(cli.stderr()).toBe(
      "tapedeck: alice/shop is already recorded by another tap: this one is recorded as alice/shop-3\n",
    );
  });

  it("passes no signal that came to all a second time, however late it knows that it did", async () => {
    const { cwd, env } = project();
    const command = "trap 'echo TERM' TERM; echo ready; until [ -e enough ]; do sleep 0.05; done";
    const cli = startCli(["run", "--", "sh", "-c", command], { cwd, env });
    await until(() => cli.stdout().includes("ready"), { message: "the command to run" });
    const pid = cli.child.pid ?? 0;
    // A `cat` in the group knows whether a signal came to all: stopped, it says so as late as on a busy machine.
    const witness = Number(execFileSync("pgrep", ["-P", String(pid), "-x", "cat"], { encoding: "utf8" }));
    process.kill(witness, "SIGSTOP");
    await until(() => readFileSync(`/proc/${witness}/stat`, "utf8").includes(") T "), { message: "it to stop" });
    process.kill(-pid, "SIGTERM");
    await delay(500); // how late the witness answers; no second signal comes in it
    process.kill(witness, "SIGCONT");
    writeFileSync(join(cwd, "enough"), "");
    expect(await cli.ended).toBe(0);
    expect(cli.stdout()).toBe("ready\nTERM\n");
  });

  it("killed, leaves the file of a command that lives on to the next one, and nobody waits", async () => {
    await using recorder = await startRecorder();
    const { cwd, env, spill, waiting } = project();
    const stand = { STAND_IN_NOW: "1", STAND_IN_STDERR: "still building\n" };
    const killed = startCli(["run", "--", "skaffold", "dev"], { cwd, env: { ...env, ...stand } });
    await until(() => reported(killed.stdout()).length > 0, { message: "the command to run" });
    const { note, command, file } = noteIn(spill);
    for (const one of [file, `${file}.v2`]) expect(statSync(one).mode & 0o777).toBe(0o600);
    process.kill(killed.child.pid ?? 0, "SIGKILL");
    await until(() => killed.child.signalCode === "SIGKILL", { message: "it to die" });
    const next = () => startCli(["run", "--url", urlOf(nobody), "--", "true"], { cwd, env });
    // It may still write.
    expect(await next().ended).toBe(0);
    expect(waiting()).toContain(note);

    process.kill(command, "SIGINT");
    await until(() => readFileSync(`${file}.v2`, "utf8") !== "", { message: "the file to be written" });
    await until(() => !isAlive(command), { message: "the command to end" });
    // Its output goes where it went, and nobody else has asked it to end.
    await until(() => reported(killed.stdout()).length > 1, { message: "its last words" });
    expect(reported(killed.stdout()).slice(1)).toEqual([{ signal: "SIGINT" }]);
    await until(() => killed.stderr() === "still building\n", { message: "what it has said on stderr" });
    const more = { ...env, STAND_IN_OLD: "1", TAPEDECK_URL: urlOf(nobody) };
    const taking = startCli(["record", "--waiting", nobody, "--url", recorder.url], { cwd, env: more });
    expect(await taking.ended).toBe(0);
    expect(framesOf(recorder.items, "v1")).toHaveLength(messagesOf(build, "v1").length);
    expect(framesOf(recorder.items, "v2")).toHaveLength(messagesOf(build, "v2").length);
    expect(recorder.hellos.at(-1)).toMatchObject({ developer: "alice", project: "shop" });
    expect(waiting()).toEqual([]);
  });

  it("takes the file that a killed one has left, also while its own command still runs", async () => {
    const port = await ownPort();
    const { cwd, env, spill, waiting } = project();
    const at = { ...env, TAPEDECK_URL: urlOf(`127.0.0.1:${port}`) };
    const killed = startCli(["run", "--", "skaffold", "dev"], { cwd, env: { ...at, STAND_IN_NOW: "1" } });
    await until(() => reported(killed.stdout()).length > 0, { message: "the command to run" });
    const { command } = noteIn(spill);
    process.kill(killed.child.pid ?? 0, "SIGKILL");
    await until(() => killed.child.signalCode === "SIGKILL", { message: "it to die" });
    process.kill(command, "SIGINT");
    await until(() => !isAlive(command), { message: "the command to end" });

    await using recorder = await startRecorder({ port });
    await using next = startCli(["run", "--", "sh", "-c", "while [ ! -e over ]; do sleep 0.05; done"], {
      cwd,
      env: at,
    });
    const frames = (channel: "v1" | "v2") => framesOf(recorder.items, channel).length;
    await until(() => frames("v1") + frames("v2") >= messagesOf(build, "v1").length + messagesOf(build, "v2").length, {
      message: "what the killed one has left",
    });
    writeFileSync(join(cwd, "over"), "");
    expect(await next.ended).toBe(0);
    expect([frames("v1"), frames("v2")]).toEqual([messagesOf(build, "v1").length, messagesOf(build, "v2").length]);
    expect(waiting().filter((name) => name.includes(".events."))).toEqual([]);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
