import { LocalizedMessage } from "@tapedeck/proto/google/rpc/error_details";
import {
  Basis,
  Box,
  Component_Type,
  type DeepPartial,
  GetJobStreamResponse,
  GetVersionInfoResponse,
  type Job,
  Job_State,
  ListJobsResponse,
  Operation_PhysicalState,
  Project,
  Runner,
  Target,
} from "@tapedeck/proto/vagrant/vagrant";
import { ulid } from "@tapedeck/query/testing/vagrant-scenario";
import type { Recording } from "./recording.ts";

export type MachineState = "CREATED" | "DESTROYED" | "NOT_CREATED" | "UNKNOWN";

export type VagrantSetup = {
  readonly labels: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly flags?: Readonly<Record<string, string | boolean>>;
  readonly boxes?: readonly { readonly name: string; readonly version: string; readonly provider?: string }[];
  /** Each machine's state when the command begins. */
  readonly machines: Readonly<Record<string, MachineState>>;
  readonly provider?: string;
};

let ids = 50_000;
const nextId = () => ulid(ids++);

/** One `vagrant-go …` under `tapedeck run`: a server of its own, from its first answer to its end. */
export function vagrantCommand(recording: Recording, setup: VagrantSetup) {
  const { labels, version = "2.3.7", command, args = [], flags = {}, boxes = [], provider = "virtualbox" } = setup;
  const session = recording.begin({ command: `vagrant ${command}`, ...labels }, version);
  const info = GetVersionInfoResponse.fromPartial({ info: { version } });
  session.described("version", GetVersionInfoResponse.encode(info).finish());
  const [runner, job, stream, basis, project] = [nextId(), nextId(), nextId(), nextId(), nextId()];
  const targets = new Map(Object.entries(setup.machines).map(([name, state]) => [name, { id: nextId(), state }]));
  const boxIds = boxes.map(() => nextId());
  const scope = { resource_id: project, name: "shop", path: "/home/dev/shop" };

  const resources = () => {
    recording.pass(300);
    const entry = (id: string, bytes: Uint8Array) => ({ id, bytes: Buffer.from(bytes) });
    const kind = (name: string, entries: readonly ReturnType<typeof entry>[]) => ({
      kind: name,
      same: false,
      missing: [],
      entries: [...entries],
    });
    const machines = [...targets].map(([name, { id, state }]) => {
      const target = { resource_id: id, name, project: scope, provider, state: Operation_PhysicalState[state] };
      return entry(id, Target.encode(Target.fromPartial(target)).finish());
    });
    const stored = boxes.map(({ name, version: of, provider: by = "virtualbox" }, index) => {
      const directory = `/home/dev/.vagrant.d/boxes/${name.replace("/", "-VAGRANTSLASH-")}/${of}/${by}`;
      const box = { resource_id: boxIds[index] ?? "", name, version: of, provider: by, directory };
      return entry(box.resource_id, Box.encode(Box.fromPartial(box)).finish());
    });
    const components = (["COMMAND", "PROVIDER", "PROVISIONER"] as const).map((name) => ({
      name,
      type: Component_Type[name],
    }));
    const value = {
      kinds: [
        kind("target", machines),
        kind("project", [entry(project, Project.encode(Project.fromPartial(scope)).finish())]),
        kind("basis", [
          entry(basis, Basis.encode(Basis.fromPartial({ resource_id: basis, name: "default" })).finish()),
        ]),
        kind("box", stored),
        kind("runner", [
          entry(runner, Runner.encode(Runner.fromPartial({ id: runner, by_id_only: true, components })).finish()),
        ]),
      ],
    };
    session.observe("resources", { $case: "resources", value });
  };

  const cli_args = {
    args: [...args],
    flags: Object.entries(flags).map(([name, value]) => ({
      name,
      value: typeof value === "string" ? { $case: "string" as const, value } : { $case: "bool" as const, value },
    })),
  };
  let known: DeepPartial<Job> = {
    id: job,
    scope: { $case: "project", value: scope },
    target_runner: { target: { $case: "id", value: { id: runner } } },
    operation: { $case: "command", value: { command, component: { name: command }, cli_args } },
    state: Job_State.QUEUED,
    queue_time: recording.now(),
  };
  let printed = 0n;
  const send = (event: DeepPartial<GetJobStreamResponse>["event"]) => {
    recording.pass(20);
    const bytes = Buffer.from(GetJobStreamResponse.encode(GetJobStreamResponse.fromPartial({ event })).finish());
    session.observe("jobs", { $case: "streamed", value: { job, bytes, stream, before: printed } });
  };
  const changed = (change: DeepPartial<Job>) => {
    const previous = known.state ?? Job_State.UNKNOWN;
    known = { ...known, ...change };
    send({ $case: "state", value: { previous, current: known.state ?? Job_State.UNKNOWN, job: known } });
  };
  const list = (jobs: readonly DeepPartial<Job>[]) => {
    const all = ListJobsResponse.encode(ListJobsResponse.fromPartial({ jobs: [...jobs] })).finish();
    session.observe("jobs", { $case: "all", value: Buffer.from(all) });
  };

  list([]);
  resources();
  list([known]);
  send({ $case: "open", value: {} });
  send({ $case: "state", value: { previous: Job_State.UNKNOWN, current: Job_State.QUEUED, job: known } });
  changed({ state: Job_State.WAITING, assign_time: recording.now() });
  changed({ state: Job_State.RUNNING, ack_time: recording.now() });

  const over = (run: NonNullable<DeepPartial<Job>["result"]>["run"]) => {
    changed({ state: Job_State.SUCCESS, complete_time: recording.now(), result: { run } });
    list([known]);
    resources();
    session.end();
    recording.pass(600_000);
  };

  return {
    session: session.session,
    print(lines: readonly string[], style = "info") {
      for (const msg of lines) {
        send({ $case: "terminal", value: { events: [{ event: { $case: "line", value: { msg, style } } }] } });
        printed += 1n;
        recording.pass(400);
      }
    },
    machine(name: string, state: MachineState) {
      const target = targets.get(name);
      if (target === undefined) throw new Error(`no machine ${name}`);
      targets.set(name, { ...target, state });
      resources();
    },
    succeeded: () => over({ run_result: true, exit_code: 0 }),
    /** Ends with the error that Ruby raised; its message for people. */
    raised(message: string) {
      const value = Buffer.from(LocalizedMessage.encode({ locale: "en-US", message }).finish());
      const details = [{ type_url: "type.googleapis.com/google.rpc.LocalizedMessage", value }];
      over({ run_result: false, exit_code: 0, run_error: { code: 2, message: "exception", details } });
    },
  };
}
