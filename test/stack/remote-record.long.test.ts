import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { build, control, framesOf, reports, saidIn, Team } from "./remote-team.ts";

const team = new Team();

describe("a team's Tapedeck", () => {
  it.skipIf(process.platform !== "linux")("opens no listening port on the laptop", async () => {
    const { text } = await team.token(["recorder"], "lena");
    await using fake = await startFakeSkaffold({ recording: loadRecording(build) });
    await using recording = team.laptop(text).record(fake);
    const running = team.laptop(text).cli(["run", "--project", "shop", "--", "skaffold", "dev"]);
    for (const project of ["blog", "shop"]) {
      await until(async () => (await team.events("lena", project)).length > 0, { message: `something of ${project}` });
    }
    expect([listeningPorts(recording.child.pid), listeningPorts(running.child.pid)]).toEqual([[], []]);
    // The check works: the fake in this process does listen.
    expect(listeningPorts(process.pid)).not.toEqual([]);
    running.child.kill("SIGTERM");
    expect(await running.ended).toBe(0);
  });

  it("has all of it once although the tap was killed, because the next one is the same tap", async () => {
    const { text } = await team.token(["recorder"], "kim");
    const { record } = team.laptop(text);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    const frames = async () => framesOf(await team.events("kim", "blog"), "v1").length;
    const first = record(fake);
    await reports(first, "recording as acme/kim/blog/skaffold");
    await fake.playUntil({ v1: 20 });
    await until(async () => (await frames()) === fake.played.v1, { message: "the beginning" });
    process.kill(first.child.pid ?? 0, "SIGKILL");
    await first.ended;
    await fake.playUntil({ v1: 40 });
    await using second = record(fake);
    await reports(second, "recording as acme/kim/blog/skaffold");
    await fake.play();
    await until(async () => (await frames()) === saidIn(control, "v1").length, { message: "the rest" });
    second.child.kill("SIGINT");
    expect(await second.ended).toBe(0);
    const all = await team.events("kim", "blog");
    for (const channel of ["v1", "v2"] as const) expect(framesOf(all, channel)).toEqual(saidIn(control, channel));
    const taps = all.flatMap(({ detail }) =>
      detail?.$case === "upstream" && detail.value.tap ? [detail.value.tap] : [],
    );
    expect([taps.length, new Set(taps).size]).toEqual([2, 1]);
    expect(all.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
  });
});

/** The process's own listening sockets, on any address. */
function listeningPorts(pid: number | undefined): readonly string[] {
  const held = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"].flatMap((list) =>
    readFileSync(`/proc/${pid}/net/${list}`, "latin1")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = "", , state, , , , , , inode = ""]) => (state === "0A" && held.has(inode) ? [local] : [])),
  );
}
