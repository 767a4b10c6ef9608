import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Operation } from "@tapedeck/client";
import { sessionLines } from "tapedeck/commands/run/session-lines";
import { startCli } from "tapedeck/testing/cli";
import { installProgram } from "tapedeck/testing/program";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

const folder = mkdtempSync(join(tmpdir(), "run-links-"));
installProgram(join(folder, "bin"), "vagrant");
const path = installSkaffold(join(folder, "bin"));
const cleanup = new AsyncDisposableStack();
let stack: Stack;

beforeAll(async () => {
  stack = cleanup.use(await startStack({}));
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

type Failed = {
  readonly position: string;
  readonly operation: { readonly runner: number; readonly loop: number; readonly subject: string };
};

const skaffold = (recording: string) => ({
  command: ["skaffold", "build"],
  env: { STAND_IN_RECORDING: recordingFolder(recording), STAND_IN_NOW: "1" },
});
const vagrant = { command: ["vagrant", "up"], env: { STAND_IN_RUN: "failing" } };

it.each([
  {
    what: "a failed loop",
    ...skaffold("04b-first-deploy-fails-process-exits"),
    failure: "loop.failed",
    link: (session: string, { operation: { runner, loop } }: Failed) =>
      `deploy failed in loop ${loop}: /loops/${session}.${runner}.${loop}`,
  },
  { what: "no failure", ...skaffold("12-skaffold-build-one-shot"), failure: undefined, link: () => "" },
  { what: "no failure before a good round", ...skaffold("21-old-v0.40.0"), failure: undefined, link: () => "" },
  {
    what: "a build that failed outside of loops",
    ...skaffold("22-skaffold-build-fails"),
    failure: "build.failed",
    link: (session: string, { position, operation }: Failed) =>
      `build ${operation.subject} failed: /sessions/${session}?at=${position}`,
  },
  {
    what: "a failed vagrant up",
    ...vagrant,
    failure: "command.finished",
    link: (session: string, { position }: Failed) => `vagrant up failed: /sessions/${session}?at=${position}`,
  },
])("a command leads to its session on the page, and to $what", async ({ what, command, env: own, failure, link }) => {
  const project = what.replaceAll(" ", "-");
  const cwd = join(folder, project);
  mkdirSync(cwd);
  writeFileSync(join(cwd, "Vagrantfile"), "");
  const env = {
    PATH: path,
    TAPEDECK_SPILL: join(cwd, "spill"),
    TAPEDECK_DEVELOPER: "alice",
    TAPEDECK_URL: `http://${stack.http}`,
    TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1) ?? "",
    ...own,
  };
  const cli = startCli(["run", "--project", project, "--", ...command], { cwd, env });
  await cli.ended;
  await stack.caughtUp();
  const get = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body).items;
  const [{ session, source }] = await get(`sessions?project=${project}`);
  const where = `as alice/${project}, session ${session}: http://${stack.http}/sessions/${session}`;
  const page = `http://${stack.http}`;
  const [failed] =
    failure === undefined ? [] : await get(`events?session=${session}&kind=${failure}&outcome=failed&last=1`);
  expect(failed !== undefined).toBe(failure !== undefined);
  const operations = await get(`operations?session=${session}&outcome=failed`);
  const { cause } = operations.find((one: Operation) => one.endPosition === failed?.position) ?? {};
  expect(cause?.text === undefined).toBe(failed === undefined);
  const linksWith = (why: string) =>
    failed === undefined ? [] : [link(session, failed).replace(": /", `: ${why}${page}/`)];
  const links = linksWith(`${cause?.text}: `);
  const ended = `the command ended with exit code ${await cli.ended}`;

  // The command gives only its exit code if the answer takes too long, as it may on a busy machine.
  const said = cli.stderr().match(/tapedeck: .*/g) ?? [];
  // The command waits at most 2 s until what it has pushed is recorded. The reader below waits as long as it takes.
  const isLate = said[1]?.startsWith("tapedeck: not recorded yet: the recording waits in ") === true;
  const first = [`tapedeck: recording ${where}`, isLate ? said[1] : `tapedeck: recorded ${where}`];
  expect(said.slice(0, 2)).toEqual(first);
  const lastWords = said.slice(2).map((line) => line.slice("tapedeck: ".length));
  expect([...links, ...linksWith(""), ended]).toEqual(expect.arrayContaining(lastWords));

  const lines: string[] = [];
  const patient = sessionLines(undefined, { ...env, XDG_CONFIG_HOME: cwd }, (line) => lines.push(line), 60_000);
  patient.welcomed(source);
  patient.found(session);
  await patient.end(new AbortController().signal, { code: 0, signal: null });
  expect(lines).toEqual([`recording ${where}`, `recorded ${where}`, ...links]);
});

it("a command of whose upstream nothing was seen is recorded with its command line, exit code and times", async () => {
  const cwd = join(folder, "unseen");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "Vagrantfile"), "");
  const env = {
    PATH: path,
    TAPEDECK_SPILL: join(cwd, "spill"),
    TAPEDECK_DEVELOPER: "alice",
    STAND_IN_RUN: "fleeting",
    TAPEDECK_URL: `http://${stack.http}`,
    TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1) ?? "",
  };
  const cli = startCli(["run", "--project", "unseen", "--", "vagrant", "up", "web"], { cwd, env });
  expect(await cli.ended).toBe(5);
  await stack.caughtUp();
  const get = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body);
  const { items } = await get("sessions?project=unseen");
  expect(items).toMatchObject([
    {
      exitCode: 5,
      commandLine: "vagrant up web",
      endReason: "process ended with exit code 5",
      startedAt: expect.any(String),
      endedAt: expect.any(String),
    },
  ]);
  expect(items[0].startedAt < items[0].endedAt).toBe(true);
  expect(cli.stderr()).toContain(`recorded as alice/unseen, session ${items[0].session}`);
  expect(await get("compare?left=alice/unseen/vagrant")).toMatchObject({
    left: {
      unit: "session",
      outcome: "failed",
      failure: { phase: "session", error: "process ended with exit code 5" },
    },
  });
  const { items: causes } = await get("stats/failures?project=unseen&group=phase,error");
  expect(causes).toMatchObject([{ phase: "session", error: "process ended with exit code 5", failures: 1 }]);
});

it("a failed command whose recording can't be read says how it ended, and claims nothing of its steps", async () => {
  const env = { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_GRPC_PORT: "1", XDG_CONFIG_HOME: folder };
  const linesAt = async (code: number, timeoutMs: number) => {
    const lines: string[] = [];
    const some = sessionLines(undefined, env, (line) => lines.push(line), timeoutMs);
    some.welcomed("default/alice/none/skaffold");
    some.found("01JUNKNOWN");
    await some.end(new AbortController().signal, { code, signal: null });
    return lines.slice(2);
  };
  expect(await linesAt(3, 0)).toEqual(["the command ended with exit code 3"]);
  expect(await linesAt(0, 0)).toEqual([]);
});
