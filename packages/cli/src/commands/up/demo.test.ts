import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, describe, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp } from "../../testing/up.ts";
import { pauseUnwatched } from "./demo-care.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-demo-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

type Source = { readonly source: string; readonly status: string };

describe("the demo", { timeout: 300_000 }, () => {
  it("plays developers of Skaffold and Vagrant and a rkt host, and keeps everybody else out", async () => {
    const up = await startUp({ cwd });
    const ask = (...args: string[]) => startCli(args, { cwd, env: up.env });
    expect(up.cli.stdout()).toContain("Tapedeck plays a demo");
    await until(
      async () => {
        const status = ask("status", "--json");
        await status.ended;
        const { sources } = JSON.parse(status.stdout()) as { sources: Source[] };
        expect(sources.map(({ source }) => source).sort()).toEqual([
          "demo/alice/shop/skaffold",
          "demo/bob/shop/skaffold",
          "demo/chris/blog/skaffold",
          "demo/dana/shop/vagrant",
          "demo/erin/cart/skaffold",
          "demo/node-1/host/rkt",
        ]);
        return sources.every(({ status: is }) => is === "recording");
      },
      { message: "six sources" },
    );
    expect(up.cli.stdout()).toContain("state -s node-1/host");
    // It is recorded from the connection on, and is described a moment later.
    await until(
      async () => {
        const host = ask("state", "-s", "node-1/host");
        expect([await host.ended, host.stderr()]).toEqual([0, ""]);
        expect(host.stdout()).toContain("rkt 1.30.0+git171c416f, /var/lib/rkt-");
        return true;
      },
      { message: "the host's state" },
    );
    const machines = await until(
      async () => {
        const shown = ask("state", "-s", "dana/shop");
        expect([await shown.ended, shown.stderr()]).toEqual([0, ""]);
        return ["web2 ", "up "].every((start) => shown.stdout().includes(`\n${start}`)) ? shown.stdout() : undefined;
      },
      { message: "machines" },
    );
    expect(machines).toMatch(/^up +(queued|assigned|running|succeeded) /m);
    expect(up.cli.stdout()).toContain("state -s dana/shop");
    // Skaffold's own API is about Skaffold's sources alone: the host is none of its choices.
    const ambiguous = await fetch(`${up.env.TAPEDECK_URL}/v1/state`);
    const { message } = (await ambiguous.json()) as { message: string };
    expect(message).toContain("demo/alice/shop/skaffold");
    expect(message).not.toContain("node-1");

    const second = startCli(["up", "--skaffold", "127.0.0.1:50051"], { cwd });
    expect(await second.ended).toBe(1);
    expect(second.stderr()).toMatch(
      /^tapedeck: the demo runs here \(process \d+\), and it accepts no recordings: stop it first .*\n$/,
    );

    const env = { ...up.env, PATH: installSkaffold(join(cwd, "bin")) };
    const recording = recordingFolder("12-skaffold-build-one-shot");
    const run = startCli(["run", "--", "skaffold", "build"], { cwd, env: { ...env, STAND_IN_RECORDING: recording } });
    expect(await run.ended).toBe(0);
    // Told while the command runs, where there is time for it, and at its end.
    expect(run.stderr()).toMatch(
      /^(tapedeck: not recorded for now: this is the demo: .*\n)?tapedeck: not recorded yet \(this is the demo: .*\): the recording waits in .*\n$/,
    );
    expect(readdirSync(join(cwd, "state", "tapedeck", "spill"))).toHaveLength(1);
    expect(await up.stop()).toBe(0);

    // What waits is meant for a Tapedeck at that port.
    const port = up.env.TAPEDECK_GRPC_PORT ?? "";
    const real = await startUp({ cwd, args: ["--no-demo"], env: { TAPEDECK_GATEWAY_GRPC_PORT: port } });
    await until(() => real.cli.stdout().includes("delivered the waiting recording of"), {
      message: "the run that waited",
    });
    // The tables follow the log.
    await until(
      async () => {
        const status = startCli(["status", "--json"], { cwd, env: real.env });
        await status.ended;
        const { sources } = JSON.parse(status.stdout()) as { sources: Source[] };
        expect(sources.map(({ source }) => source.split("/")[0])).toEqual(["default"]);
        return true;
      },
      { message: "the run that waited to be listed" },
    );
    expect(await real.stop()).toBe(0);
  });

  it("pauses when nobody has watched for a while, and goes on with the next viewer", async () => {
    let lastViewer = 0;
    const gateway = createServer((_, response) => {
      response.end(`tapedeck_gateway_last_viewer_timestamp_seconds{service="gateway"} ${lastViewer}\n`);
    });
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
    const done: string[] = [];
    const stop = new AbortController();
    const watching = pauseUnwatched({
      demo: { pause: () => void done.push("pause"), resume: () => void done.push("resume") },
      http: `127.0.0.1:${(gateway.address() as AddressInfo).port}`,
      say: () => {},
      signal: stop.signal,
      unwatchedMs: 300,
      pollMs: 5,
    });
    await until(() => done.length === 1, { message: "the pause" });
    lastViewer = Date.now() / 1_000 + 60;
    await until(() => done.length === 2, { message: "the demo to go on" });
    expect(done).toEqual(["pause", "resume"]);
    stop.abort();
    await watching;
    await new Promise((resolve) => gateway.close(resolve));
  });
});
