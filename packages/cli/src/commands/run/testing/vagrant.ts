import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { textOf } from "@tapedeck/fakes/vagrant/client";
import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { runSteps } from "@tapedeck/fakes/vagrant/timed";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { GetJobStreamResponse, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startCli } from "../../../testing/cli.ts";
import { installProgram } from "../../../testing/program.ts";
import { startRecorder, type TestRecorder, urlOf } from "../../../testing/recorder.ts";

const sample = fileURLToPath(new URL("../../../../../fakes/recordings/vagrant/samples/up.jsonl", import.meta.url));
const nobody = "127.0.0.1:9";

type Kind = "succeeding" | "failing" | "none" | "waiting" | "brief" | "fleeting";

/** Users' projects for the tests of one file: each has a folder, and how a user's shell is set up there. */
export function vagrantProjects() {
  const root = mkdtempSync(join(tmpdir(), "tapedeck-run-vagrant-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const path = installProgram(join(root, "bin"), "vagrant");
  return (kind: Kind, to: Pick<TestRecorder, "address"> = { address: nobody }) => {
    const folder = mkdtempSync(join(root, "cluster-"));
    writeFileSync(join(folder, "Vagrantfile"), "");
    const cwd = join(folder, "roles");
    mkdirSync(cwd);
    const spill = join(folder, "spill");
    mkdirSync(spill);
    const env = {
      PATH: path,
      TAPEDECK_SPILL: spill,
      TAPEDECK_URL: urlOf(to.address),
      TAPEDECK_DEVELOPER: "dana",
      TAPEDECK_PROJECT: "",
      STAND_IN_RUN: kind,
    };
    return { cwd, env, name: folder.slice(root.length + 1), left: () => readdirSync(spill) };
  };
}

type Project = ReturnType<typeof vagrantProjects>;

export type ReportedLine = {
  readonly args?: readonly string[];
  readonly tty?: boolean;
  readonly signal?: string;
  readonly level?: string;
};

export const reported = (text: string): ReportedLine[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ReportedLine);

/** All that was seen of the jobs, in the order of queueing: their last states, and the most that one opening of a stream gave of their output. */
function jobsIn(items: readonly Item[]) {
  const jobs = new Map<
    string,
    { command?: string; state?: Job_State; succeeded?: boolean; texts: readonly string[] }
  >();
  const openings = new Map<string, string[]>();
  for (const { what } of items) {
    if (what?.$case !== "frame" || what.value.channel !== "jobs") continue;
    const { result } = Observation.decode(what.value.bytes);
    if (result?.$case !== "streamed") continue;
    const { job, stream, bytes } = result.value;
    const { event } = GetJobStreamResponse.decode(bytes);
    const known = jobs.get(job) ?? { texts: [] };
    const texts = openings.get(stream) ?? [];
    openings.set(stream, texts);
    if (event?.$case === "terminal") texts.push(...event.value.events.map(textOf));
    const now = event?.$case === "state" ? event.value.job : undefined;
    jobs.set(job, {
      ...known,
      ...(now?.operation?.$case === "command" && { command: now.operation.value.command }),
      ...(now && { state: now.state, succeeded: now.result?.run?.run_result === true }),
      texts: texts.length > known.texts.length ? texts : known.texts,
    });
  }
  return [...jobs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, job]) => job);
}

/** What each of the two jobs prints. */
function expectedTexts(kind: "succeeding" | "failing"): readonly (readonly string[])[] {
  const writes = runSteps(loadRecording(sample), kind).flatMap((step) => (step.kind === "write" ? [step] : []));
  const byJob = Map.groupBy(writes, ({ job }) => job);
  return [...byJob.values()].map((ofJob) => ofJob.flatMap(({ events }) => events.map(textOf)));
}

const onlyCommand = "tapedeck: only the command line, the exit code and the times of this command are recorded";

/** Expects a session that has nothing but its command, and ends with it. */
function expectCommandAlone({ items }: TestRecorder, commandLine: string, code: number): void {
  expect(items.map(({ what }) => what?.$case)).toEqual(["dialled", "identified", "closed"]);
  const [dialled, , closed] = items;
  expect(closed?.what).toMatchObject({
    value: {
      process_ended: true,
      exit_code: code,
      command_run: {
        command_line: commandLine,
        exit_code: code,
        signal: "",
        started_at: dialled?.at,
        ended_at: closed?.at,
      },
    },
  });
}

const ownOutput = "==> web: a deprecated setting\ndone";

/** Tests that the server of a command is recorded that is found in this way. */
export function testRecorded(project: Project, find: "sockets" | "log"): void {
  it.each([
    ["succeeding", 0],
    ["failing", 1],
  ] as const)("records all of a %s command, as one server's, with its exit code", async (kind, code) => {
    await using recorder = await startRecorder();
    const { cwd, env, name, left } = project(kind, recorder);
    const cli = startCli(["run", "--find", find, "--label", "ticket=7", "--", "vagrant", "up", "--provision"], {
      cwd,
      env,
    });
    expect(await cli.ended).toBe(code);
    expect(cli.stderr()).toBe(ownOutput);
    expect(reported(cli.stdout())[0]).toEqual({
      args: ["up", "--provision"],
      tty: false,
      ...(find === "log" && { level: "info" }),
    });

    const jobs = jobsIn(recorder.items);
    expect(jobs.map(({ command, state }) => [command, state])).toEqual([
      [undefined, Job_State.SUCCESS],
      ["up", Job_State.SUCCESS],
    ]);
    expect(jobs[1]?.succeeded).toBe(kind === "succeeding");
    expect(jobs.map(({ texts }) => texts)).toEqual(expectedTexts(kind));

    const [hello] = recorder.hellos;
    expect(hello).toMatchObject({ developer: "dana", project: name, upstream: "vagrant", redact: "on" });
    expect(hello?.labels).toMatchObject({ ticket: "7", command: "vagrant up", user: expect.any(String) });
    const identities = recorder.items.flatMap(({ what }) =>
      what?.$case === "identified" ? [what.value.identity] : [],
    );
    expect(identities).toEqual([expect.stringMatching(/^[0-9A-Z]{26}$/)]);
    expect(recorder.items.at(-1)?.what).toMatchObject({
      $case: "closed",
      value: { process_ended: true, exit_code: code },
    });
    expect(left()).toEqual([]);
  });

  it("finds the server of what a command starts", async () => {
    await using recorder = await startRecorder();
    const { cwd, env } = project("failing", recorder);
    const command = ["sh", "-c", "(vagrant up; exit 7); exit $?"];
    const cli = startCli(["run", "--find", find, "--upstream", "vagrant", "--", ...command], { cwd, env });
    expect(await cli.ended).toBe(7);
    expect(cli.stderr()).toBe(ownOutput);
    expect(jobsIn(recorder.items).map(({ texts }) => texts)).toEqual(expectedTexts("failing"));
    // It is gone, and the 7 is not its exit code.
    expect(recorder.items.at(-1)?.what).toMatchObject({
      $case: "closed",
      value: { process_ended: true, exit_code: undefined },
    });
  });
}

/** Tests how commands end whose server is searched for in this way. */
export function testEnds(project: Project, find: "sockets" | "log"): void {
  it("passes signals on, and ends as the command did", async () => {
    await using recorder = await startRecorder();
    const { cwd, env } = project("waiting", recorder);
    const cli = startCli(["run", "--find", find, "--", "vagrant", "up"], { cwd, env });
    await until(() => cli.stdout().includes('"port"'), { message: "the server to be looked at" });
    cli.child.kill("SIGINT");
    expect(await cli.ended).toBe(3);
    expect(reported(cli.stdout()).filter(({ signal }) => signal !== undefined)).toEqual([{ signal: "SIGINT" }]);
    expect(recorder.items.at(-1)?.what).toMatchObject({
      $case: "closed",
      value: { process_ended: true, exit_code: 3 },
    });
  });

  it("records the command alone where there was no server, also inside of what records something else", async () => {
    await using recorder = await startRecorder();
    const { cwd, env, left } = project("none", recorder);
    const cli = startCli(["run", "--find", find, "--", "vagrant", "up", "--name", "a b"], {
      cwd,
      env: { ...env, TAPEDECK_RUN: "skaffold" },
    });
    expect(await cli.ended).toBe(4);
    expect(cli.stderr()).toBe(
      `${onlyCommand}: no Vagrant server was found: only the server of vagrant-go can be recorded\n`,
    );
    expectCommandAlone(recorder, "vagrant up --name 'a b'", 4);
    expect(left()).toEqual([]);
  });

  it("says of another program that no server was found in it, and records nothing", async () => {
    await using recorder = await startRecorder();
    const { cwd, env, left } = project("none", recorder);
    const command = ["sh", "-c", "exit 3"];
    const cli = startCli(["run", "--find", find, "--upstream", "vagrant", "--", ...command], { cwd, env });
    expect(await cli.ended).toBe(3);
    expect(cli.stderr()).toMatch(/^tapedeck: this command is not recorded: no Vagrant server was found/);
    expect(recorder.items).toEqual([]);
    expect(left()).toEqual([]);
  });

  it.each(["brief", "fleeting"] as const)(
    "records the command of a %s server, and says that it exited before it could be reached",
    async (kind) => {
      await using recorder = await startRecorder();
      const { cwd, env, left } = project(kind, recorder);
      const cli = startCli(["run", "--find", find, "--", "vagrant", "up"], { cwd, env });
      expect(await cli.ended).toBe(5);
      const who = find === "sockets" && kind === "brief" ? "its server \\(or another listener\\)" : "its server";
      const output = `${onlyCommand}: ${who} exited before it could be reached`;
      expect(cli.stderr()).toMatch(new RegExp(`^(?:==> web: .*\\n)?${output} \\(127\\.0\\.0\\.1:\\d+\\)\\n$`));
      expectCommandAlone(recorder, "vagrant up", 5);
      expect(left()).toEqual([]);
    },
  );
}
