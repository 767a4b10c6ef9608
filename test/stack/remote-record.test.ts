import { readdirSync } from "node:fs";
import { status } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { build, control, framesOf, reports, saidIn, Team } from "./remote-team.ts";

// Laptops and a team's Tapedeck: TLS, tokens, and nothing but `tapedeck run` and `tapedeck record` on the laptops. A tap
// that is killed, and the laptop's ports: remote-record.long.test.ts.

const team = new Team();

describe("a team's Tapedeck", () => {
  it("has each developer's recording under the name that the token gives", async () => {
    const [alice, dora, viewer] = await Promise.all([
      team.token(["recorder"], "alice"),
      team.token(["recorder"], "dora"),
      team.token(["viewer"]),
    ]);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    await using record = team.laptop(dora.text).record(fake);
    const run = team.laptop(alice.text).run("--developer", "dora");
    expect(await run.ended).toBe(0);
    expect(run.stderr().split("\n")).toEqual([
      "tapedeck: this is recorded as alice/shop, because the token belongs to alice",
      expect.stringMatching(/^tapedeck: recording as alice\/shop, session /),
      expect.stringMatching(/^tapedeck: recorded as alice\/shop, session /),
      "",
    ]);
    await reports(record, `recording as acme/dora/blog/skaffold at ${team.to}`);
    await fake.playUntil({ v1: 40 });
    await until(async () => framesOf(await team.events("dora", "blog"), "v1").length === fake.played.v1, {
      message: "what Dora's Skaffold says",
    });
    for (const channel of ["v1", "v2"] as const) {
      expect(framesOf(await team.events("alice", "shop"), channel)).toEqual(saidIn(build, channel));
    }
    await team.stack.caughtUp();
    const { items } = await team.getJson<{ items: { source: string }[] }>("/api/v1/sources", viewer.text);
    expect(items.map(({ source }) => source).sort()).toEqual(["acme/alice/shop/skaffold", "acme/dora/blog/skaffold"]);
  });

  it("forwards control calls to the Skaffold beside a laptop's tap and returns its answer", async () => {
    const [recorder, controller, viewer] = await Promise.all([
      team.token(["recorder"], "carl"),
      team.token(["controller"]),
      team.token(["viewer"]),
    ]);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    await using record = team.laptop(recorder.text).record(fake);
    await reports(record, "recording as acme/carl/blog/skaffold");
    await reports(record, "connected to");
    await fake.playUntil({ v1: 20 });
    const source = "carl/blog";
    await until(async () => framesOf(await team.events("carl", "blog"), "v1").length >= 20, { message: "its session" });
    await team.stack.caughtUp();
    expect(await team.execute(controller.text, source)).toMatchObject({ code: status.OK });
    expect(fake.calls).toMatchObject([{ api: "v1", name: "Execute" }]);
    expect(await team.execute(viewer.text, source)).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(fake.calls).toHaveLength(1);
    await fake.end("kill");
    await reports(record, "lost the connection to Skaffold");
    expect(await team.execute(controller.text, source)).toMatchObject({ code: status.UNAVAILABLE });
  });

  it("ends the push of a revoked token, and gets the rest once with the next token", async () => {
    const { text, revoke } = await team.token(["recorder"], "rita");
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    const first = team.laptop(text);
    await using before = first.record(fake);
    await reports(before, "recording as acme/rita/blog/skaffold");
    await fake.playUntil({ v1: 20 });
    await until(async () => framesOf(await team.events("rita", "blog"), "v1").length >= 20, {
      message: "the beginning",
    });
    await revoke();
    await reports(before, "not recorded for now: ");
    expect(before.stdout()).toMatch(/not recorded for now: .*token.*; events are kept on this machine/);
    await fake.play();
    expect([fake.health.v1.stalled, fake.health.v2.stalled]).toEqual([false, false]);
    process.kill(before.child.pid ?? 0, "SIGINT");
    expect(await before.ended).toBe(1);

    const next = await team.token(["recorder"], "rita");
    await using after = first.record(fake, { TAPEDECK_TOKEN: next.text });
    const isWhole = async (channel: "v1" | "v2") =>
      framesOf(await team.events("rita", "blog"), channel).length >= saidIn(control, channel).length;
    await until(async () => (await isWhole("v1")) && (await isWhole("v2")), { message: "the rest" });
    process.kill(after.child.pid ?? 0, "SIGINT");
    expect(await after.ended).toBe(0);
    const all = await team.events("rita", "blog");
    for (const channel of ["v1", "v2"] as const) expect(framesOf(all, channel)).toEqual(saidIn(control, channel));
    expect(all.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
    expect(fake.hung).toEqual([]);
  });

  it("refuses a push without a recorder's token, and the tap reports it in one line", async () => {
    const refused = [
      [await team.token(["viewer"]), /needs a token with the role recorder/],
      [{ text: `tdk_${"x".repeat(43)}` }, /token/],
      [{ text: "" }, /a token is needed/],
    ] as const;
    await Promise.all(
      refused.map(async ([{ text }, words]) => {
        const { spill, runUnasked } = team.laptop(text);
        const ran = runUnasked();
        expect(await ran.ended).toBe(0);
        const [now = "", end = ""] = ran.stderr().split("\n");
        expect(now).toMatch(words);
        expect(now).toMatch(/^tapedeck: not recorded for now: .*; events are kept on this machine$/);
        expect(end).toMatch(
          /^tapedeck: not recorded yet \(.*\): the recording waits in .* `tapedeck run` to that server, or/,
        );
        expect(ran.stderr()).not.toContain("tdk_x");
        expect(readdirSync(spill)).toHaveLength(1);
      }),
    );
  });
});
