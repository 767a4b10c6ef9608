import { readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { type RecordedVagrantCommand, type VagrantStateJson, vagrantText } from "./vagrant.ts";

type RecordedRow = { readonly n: number; readonly rpc?: string; readonly message?: Readonly<Record<string, unknown>> };

const file = new URL("../../../../fakes/recordings/vagrant/samples/up.jsonl", import.meta.url);
const rows = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as RecordedRow);

/** What the real one answered up to a row, as JSON: that of the API is the same. */
function stateAt(n: number): VagrantStateJson {
  const answers = rows.filter((row) => row.n <= n && row.message !== undefined);
  const last = (rpc: string) => answers.findLast((row) => row.rpc === rpc)?.message ?? {};
  const each = (rpc: string, key: string) => {
    const resources = answers.filter((row) => row.rpc === rpc).map(({ message }) => message?.[key] as { name: string });
    return [...new Map(resources.map((resource) => [resource.name, resource])).values()];
  };
  return {
    version: (last("GetVersionInfo").info ?? null) as VagrantStateJson["version"],
    targets: each("GetTarget", "target"),
    projects: each("GetProject", "project"),
    boxes: each("GetBox", "box"),
    jobs: (last("_ListJobs").jobs ?? []) as VagrantStateJson["jobs"],
  };
}

const up = "01M7WSXR6NFM73VJ0F879K4ZNP";
const began = Date.parse("2026-11-20T15:41:41.590Z");
const command: RecordedVagrantCommand = {
  subject: "up",
  instance: up,
  startedAt: new Date(began).toISOString(),
  endedAt: null,
  durationMs: null,
  outcome: null,
  error: "",
  exitCode: null,
};
const shown = (state: VagrantStateJson, commands: readonly RecordedVagrantCommand[], now: number) =>
  stripVTControlCharacters(vagrantText(state, commands, now));

it("shows the server, its machines, what it does now and what it did, and its boxes", () => {
  const failed = { ...command, endedAt: new Date(began + 1_055).toISOString(), durationMs: 1_055, outcome: "failed" };
  const error = "The SSH command responded with a non-zero exit status. (shortened)\nMore of it.";
  const earlier = { ...command, subject: "destroy", instance: "01M7WSXR6NFM73VJ0F879K0000", durationMs: 65_000 };
  const commands = [
    { ...failed, error },
    { ...earlier, startedAt: new Date(began - 200_000).toISOString(), outcome: "succeeded", endedAt: "-" },
    { ...earlier, subject: "ssh", outcome: "failed", exitCode: 127, endedAt: "-" },
  ];
  expect(shown(stateAt(100), commands, began + 30_000)).toMatchInlineSnapshot(`
    "Vagrant 2.3.7, shop (/home/dev/shop)

    MACHINE  STATE    PROVIDER
    web1     running  virtualbox
    web2     running  virtualbox

    COMMAND  OUTCOME    BEGAN      TOOK       ERROR
    up       failed     30 s ago   1.1 s      The SSH command responded with a non-zero exit status. (shortened)
    destroy  succeeded  3 min ago  1 min 5 s
    ssh      failed     30 s ago   1 min 5 s  exit code 127

    BOX                 VERSION  PROVIDER
    hashicorp/bionic64  1.0.282  virtualbox"
  `);
});

it("shows a command as it was typed, and jobs that wait or do something else", () => {
  const state = stateAt(53);
  const [init = {}, running = {}] = state.jobs;
  const cli_args = {
    args: ["web1", "web2"],
    flags: [
      { name: "provision", bool: true },
      { name: "provider", string: "docker" },
      { name: "parallel", bool: false },
    ],
  };
  const queue_time = "2026-11-20T15:41:43Z";
  const jobs = [
    init,
    { ...running, command: { command: "up", cli_args } },
    { id: "a", queue_time, state: "WAITING", init: {} },
    {
      id: "b",
      queue_time,
      state: "QUEUED",
      command: { command: "box add", cli_args: { args: ["hashicorp/bionic64"] } },
    },
    { id: "c", queue_time, state: "RUNNING" },
  ];
  expect(shown({ ...state, jobs }, [command], began + 3_000)).toMatchInlineSnapshot(`
    "Vagrant 2.3.7

    MACHINE  STATE    PROVIDER
    web1     running  virtualbox
    web2     unknown  -

    COMMAND                                                   OUTCOME   BEGAN    TOOK  ERROR
    (job)                                                     running   1 s ago  -
    box add hashicorp/bionic64                                queued    1 s ago  -
    (init)                                                    assigned  1 s ago  -
    up web1 web2 --provision --provider=docker --no-parallel  running   3 s ago  -"
  `);
});

it("distinguishes machines of several projects, and what Vagrant calls otherwise by what it means", () => {
  const states = ["NOT_CREATED", "DESTROYED", "PENDING", "HALTED", undefined];
  const targets = states.map((state, at) => ({
    name: `m${at}`,
    ...(state && { state }),
    project: { name: `p${at % 2}` },
  }));
  const state = {
    version: null,
    boxes: [],
    jobs: [],
    targets,
    projects: [{ name: "p0" }, { name: "p1", path: "/p1" }],
  };
  expect(shown(state, [], 0)).toMatchInlineSnapshot(`
    "p0, p1 (/p1)

    MACHINE  STATE        PROVIDER  PROJECT
    m0       not created  -         p0
    m1       powered off  -         p1
    m2       pending      -         p0
    m3       halted       -         p1
    m4       unknown      -         p0

    No commands."
  `);
});

it("says that nothing is there where nothing is", () => {
  const none = { version: null, targets: [], projects: [], boxes: [], jobs: [] };
  expect(shown(none, [], 0)).toBe("No machines.\n\nNo commands.");
});
