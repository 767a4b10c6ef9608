import { expect, it } from "vitest";
import type { Env, Target } from "./run-target.ts";

/** These tests check the answer, however slow the machine is. */
export const patient = { TAPEDECK_ANSWER_WITHIN: "30s" };

/** An error in a laptop's settings, and the resulting message. */
export type Wrong = readonly [string, () => Promise<Env> | Env, RegExp];

/** Tests that commands run unrecorded after one line with the reason. */
export function testRefused(on: Target, wrong: readonly Wrong[]): void {
  it.each(wrong)("%s", async (_, settings, words) => {
    const { start, run, waiting } = on.laptop({ ...patient, ...(await settings()) });
    const command = ["sh", "-c", "echo >&2 running as $$; env | sort; kill -TERM $$"];
    const ran = run(...command);
    expect(await ran.ended).toBe("SIGTERM");
    const [line = "", ...rest] = ran.stderr().split("\n");
    expect(line).toMatch(/^tapedeck: this command is not recorded: /);
    expect(line).toMatch(words);
    expect(line).not.toContain("tdk_x");
    // The command replaces this very process, so the terminal, signals and exit code are the command's.
    expect(rest).toEqual([`running as ${ran.child.pid}`, ""]);
    const without = start("sh", ...command.slice(1));
    await without.ended;
    expect(ran.stdout()).toBe(without.stdout());
    expect(waiting()).toEqual([]);
  });
}

/** A behaviour of the target that leaves open whether it accepts the recording. */
export type Undecided = readonly [string, () => Promise<Env>];

/** Tests that commands are recorded on the disk. */
export function testUndecided(on: Target, undecided: readonly Undecided[]): void {
  it.each(undecided)("on the disk if the target %s", async (_, settings) => {
    const { run, waiting } = on.laptop(await settings());
    const ran = run("skaffold", "build");
    expect(await ran.ended).toBe(0);
    expect(ran.stdout()).toContain('"args":["build"]');
    expect(ran.stderr()).not.toContain("this command is not recorded");
    expect(ran.stderr()).toContain("the recording waits in");
    expect(waiting()).toHaveLength(1);
  });
}
