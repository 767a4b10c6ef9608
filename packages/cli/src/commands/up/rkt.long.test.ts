import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/rkt/recording";
import { startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { startUp } from "../../testing/up.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-host-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const fakeOf = (recording: string) =>
  startFakeRkt({
    recording: loadRecording(join(import.meta.dirname, `../../../../fakes/recordings/rkt/${recording}`)),
  });

it("records the hosts that --rkt and tapedeck.yaml name, and shows what happens there", async () => {
  await using still = await fakeOf("06-filters");
  await using busy = await fakeOf("05-app-exit-codes");
  const source = `{ upstream: rkt, developer: Rack 5, address: "${busy.address}", interval: 20ms, load: 100 }`;
  writeFileSync(join(cwd, "tapedeck.yaml"), `sources: [${source}]\n`);
  const up = await startUp({ cwd, args: ["--rkt", still.address, "--host-name", "Rack 4", "--label", "row=b"] });
  const ask = async (...command: string[]) => {
    const cli = startCli(command, { cwd, env: up.env });
    expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
    return cli.stdout();
  };
  const output = up.cli.stdout();
  expect(output).toContain(`Rack 4/host (${still.address})`);
  expect(output).toContain("state -s rack-5/host");
  expect(output).not.toContain("skaffold");

  const lines = await until(
    async () => {
      const reported = await ask("tail", "-s", "rack-5/host", "-k", "pod.exited", "-n", "50", "--no-follow");
      const found = reported.trim().split("\n");
      return found.length === 4 ? found : undefined;
    },
    { message: "the four pods to have ended" },
  );
  expect(lines[0]).toMatch(/ {2}rack-5\/host {3}pod\.exited {10}pod 30746011 exited: fails exited with 42$/);
  const state = await until(
    async () => {
      const shown = await ask("state", "-s", "rack-5/host");
      return /^8bf0\w+ +exited/m.test(shown) ? shown : undefined;
    },
    { message: "the tables to follow" },
  );
  expect(state).toMatch(/^30746011 {2}exited +(now|\d+ \w+ ago) +zero +exited 0 +other\.example\/batch:0\.0\.7$/m);
  expect(state).toMatch(/^ +fails +exited 42 +other\.example\/batch:0\.0\.7$/m);

  // The other host is polled, and recorded, by itself.
  const shows = (expected: RegExp, ...command: string[]) =>
    until(async () => expected.test(await ask(...command)), { message: `${expected} of ${command.join(" ")}` });
  await shows(/^4f27\w+ +aborted prepare +-/m, "state", "-s", "rack-4/host");
  await shows(new RegExp(`^rack-4/host/rkt +recording +${still.address} `, "m"), "status");
  await shows(/rack-4\/host .* running {2}row=b$/m, "sessions", "-s", "rack-4/host");
  expect(await up.stop()).toBe(0);
});
