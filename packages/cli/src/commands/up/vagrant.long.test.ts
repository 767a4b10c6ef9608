import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { newNames, runSteps } from "@tapedeck/fakes/vagrant/timed";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { installProgram } from "../../testing/program.ts";
import { startUp } from "../../testing/up.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-machines-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const recording = loadRecording(join(import.meta.dirname, "../../../../fakes/recordings/vagrant/samples/up.jsonl"));

it("records the servers that --vagrant and tapedeck.yaml name and those of commands, and shows what happens there", async () => {
  await using still = await startFakeVagrant();
  await using busy = await startFakeVagrant();
  const source = `{ upstream: vagrant, developer: Dana, project: cluster, address: "${busy.address}", timeout: 60s }`;
  writeFileSync(join(cwd, "tapedeck.yaml"), `sources: [${source}]\n`);
  const up = await startUp({ cwd, args: ["--vagrant", still.address, "--developer", "erin", "--label", "row=b"] });
  const ask = async (...command: string[]) => {
    const cli = startCli(command, { cwd, env: up.env });
    expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
    return cli.stdout();
  };
  const output = up.cli.stdout();
  expect(output).toContain(`Dana/cluster (${busy.address})`);
  expect(output).toContain("state -s dana/cluster");

  await busy.playAsNow(runSteps(recording, "failing"), newNames(busy, recording)).run({ speed: "max" });
  const state = await until(
    async () => {
      const shown = await ask("state", "-s", "dana/cluster");
      const isThere = [/^web2 +running/m, /^up +failed/m, /^hashicorp\/bionic64 /m].every((line) => line.test(shown));
      return isThere && shown;
    },
    { message: "the tables to follow" },
  );
  expect(state).toMatch(/^Vagrant 2\.3\.7, shop \(\/home\/dev\/shop\)$/m);
  expect(state).toMatch(
    /^up +failed +(now|\d+ \w+ ago) +\S.*? +The SSH command responded with a non-zero exit status/m,
  );
  expect(state).toMatch(/^web2 +running +virtualbox$/m);
  expect(state).toMatch(/^hashicorp\/bionic64 +1\.0\.282 +virtualbox$/m);

  const finished = await ask("tail", "-s", "dana/cluster", "-k", "command.finished", "--no-follow");
  expect(finished).toMatch(/ {2}dana\/cluster\/vagrant {2}command\.finished {4}.*up.*non-zero exit status/);
  // The output comes by a stream of its own.
  const printed = await until(
    async () => {
      const reported = await ask("tail", "-s", "dana/cluster", "-k", "terminal.written", "-n", "50", "--no-follow");
      return /web2: E: Unable to locate package nope$/m.test(reported) && reported;
    },
    { message: "all output" },
  );
  expect(printed.split("\n").filter((line) => line.includes("web1: Booting VM..."))).toHaveLength(1);
  expect(printed).toMatch(/terminal\.written {4}web2: E: Unable to locate package nope$/m);
  expect(await ask("tail", "-s", "dana/cluster", "-n", "100", "--no-follow")).not.toContain("terminal.written");

  const folder = join(cwd, "mine");
  mkdirSync(folder);
  writeFileSync(join(folder, "Vagrantfile"), "");
  const env = { ...up.env, PATH: installProgram(join(cwd, "bin"), "vagrant"), STAND_IN_RUN: "failing" };
  const run = startCli(["run", "--developer", "erin", "--", "vagrant", "up"], { cwd: folder, env });
  expect(await run.ended).toBe(1);
  const where = `as erin/mine, session [0-9A-Z]{26}: ${up.env.TAPEDECK_URL}/sessions/[0-9A-Z]{26}\n`;
  const [began, ended] = [`tapedeck: recording ${where}`, `tapedeck: recorded ${where}`];
  // On a busy machine the command is done before its session is known.
  const both = `(?:${began}done|done${began})${ended}`;
  // It is left out where the answer takes too long.
  const failed = `(?:tapedeck: vagrant up failed: web2: E: Unable to locate package nope: ${up.env.TAPEDECK_URL}/sessions/[0-9A-Z]{26}\\?at=[0-9a-z-]+\n)?`;
  expect(run.stderr()).toMatch(new RegExp(`^==> web: a deprecated setting\n${both}${failed}$`));
  const mine = await until(
    async () => {
      const shown = await ask("state", "-s", "erin/mine");
      return /^up +failed/m.test(shown) && shown.includes(", ended") ? shown : undefined;
    },
    { message: "the command to be known" },
  );
  expect(mine).toMatch(/^web1 +running +virtualbox$/m);
  expect(await ask("sessions", "-s", "erin/mine")).toMatch(/erin\/mine\/vagrant .* m?s +vagrant up$/m);
  expect(await ask("status")).toMatch(/^erin\/\S+\/vagrant +(recording|waiting) +127\.0\.0\.1:\d+ /m);
  expect(await up.stop()).toBe(0);
});
