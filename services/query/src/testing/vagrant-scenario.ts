import { type CommandDetail, type JobDetail, Outcome, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import {
  Basis,
  Box,
  type DeepPartial,
  GetVersionInfoResponse,
  Job,
  Job_State,
  job_StateToJSON,
  Project,
  Runner,
  Target,
} from "@tapedeck/proto/vagrant/vagrant";
import { sourceName } from "@tapedeck/shared/source";
import { resourceMessages } from "../views/vagrant/resource-messages.ts";
import type { ResourceKind } from "../views/vagrant/resources.ts";
import { type Fields, type Scenario, startedAt, timestamp } from "./scenario.ts";
import { describeInParts, type Fact, framesOf, original, type When } from "./session-frames.ts";

export const vagrantShop = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "vagrant" });

type Entry = { readonly kind: ResourceKind; readonly id: string; readonly bytes: Buffer };

/** The events of a Vagrant server. `at`: milliseconds since the scenario's start. */
export function vagrantSession(session: string, { add }: Pick<Scenario, "add">) {
  const jobs = new Map<string, Job>();
  const resources = new Map<string, Entry>();

  const frame = framesOf(session, { add });
  const known = (id: string): Job => jobs.get(id) ?? Job.fromPartial({ id, state: Job_State.RUNNING });
  const ofJob = (kind: string, job: Job, value: DeepPartial<JobDetail> = {}, more: Fields = {}): Fact => ({
    kind,
    subject: job.id,
    operation: { kind: "job", subject: job.id },
    detail: {
      $case: "job",
      value: { ...describedOf(job), job: job.id, state: job_StateToJSON(job.state), ...value },
    },
    ...more,
  });
  const ofCommand = (kind: string, job: Job, value: DeepPartial<CommandDetail> = {}, more: Fields = {}): Fact[] => {
    if (job.operation?.$case !== "command") return [];
    const { command } = job.operation.value;
    return [
      {
        kind,
        subject: job.id,
        operation: { kind: "command", subject: command, instance: job.id },
        detail: { $case: "command", value: { job: job.id, command, ...value } },
        ...more,
      },
    ];
  };
  /** The end of a command without an answer: the command can't go on without its job. */
  const withJob = (job: Job, how: Fields): Fact[] =>
    job.ack_time === undefined ? [] : ofCommand("command.finished", job, {}, { ...how, inferred: true });
  const observed = (changed: DeepPartial<Job> & { readonly id: string }, facts: (job: Job) => Fact[], when: When) => {
    const job = Job.fromPartial({ ...known(changed.id), ...changed });
    jobs.set(job.id, job);
    frame("jobs", original("hashicorp.vagrant.Job", Job.encode(job).finish()), facts(job), when);
  };

  return {
    session,
    jobs: jobs as ReadonlyMap<string, Job>,
    resources: resources as ReadonlyMap<string, Entry>,
    began(version = "2.3.7") {
      const info = GetVersionInfoResponse.encode(GetVersionInfoResponse.fromPartial({ info: { version } })).finish();
      const states = { version: Buffer.from(info) };
      add({
        session,
        kind: "session.started",
        detail: { $case: "session_detail", value: { upstream_version: version, labels: { server: session } } },
      });
      add({ session, kind: "session.described", detail: { $case: "session_detail", value: { states } } });
    },
    ended: (at?: number) => add({ session, kind: "session.ended" }, at),

    /** `machine`: the target that the job is about; without it the whole project. */
    queued(id: string, command = "up", when: When = {}, machine?: { readonly id: string; readonly name: string }) {
      const operation = command === "" ? { $case: "init" as const, value: {} } : commandOp(command);
      const queue_time = timestamp(startedAt + (when.at ?? 0));
      const scope =
        machine === undefined
          ? { $case: "project" as const, value: { resource_id: "P1", name: "shop" } }
          : { $case: "target" as const, value: { resource_id: machine.id, name: machine.name } };
      const target_runner = { target: { $case: "id" as const, value: { id: "R1" } } };
      const job = { id, operation, scope, target_runner, state: Job_State.QUEUED, queue_time };
      observed(job, (now) => [ofJob("job.queued", now)], when);
    },
    assigned(id: string, when: When = {}) {
      const waiting = { id, state: Job_State.WAITING, assign_time: timestamp(startedAt + (when.at ?? 0)) };
      observed(waiting, (job) => [ofJob("job.assigned", job, { attempt: 1 })], when);
    },
    started(id: string, when: When = {}) {
      const running = { id, state: Job_State.RUNNING, ack_time: timestamp(startedAt + (when.at ?? 0)) };
      observed(running, (job) => [ofJob("job.started", job), ...ofCommand("command.started", job)], when);
    },
    cancelRequested(id: string, when: When = {}) {
      const cancel_time = timestamp(startedAt + (when.at ?? 0));
      observed({ id, cancel_time }, (job) => [ofJob("job.cancel_requested", job)], when);
    },
    /** The job ended, and its command succeeded (no code) or failed. */
    finished(id: string, exit_code?: number, when: When = {}) {
      const succeeded = exit_code === undefined;
      const result = { run: { run_result: succeeded, exit_code: exit_code ?? 0 } };
      const complete_time = timestamp(startedAt + (when.at ?? 0));
      const over = {
        outcome: succeeded ? Outcome.OUTCOME_SUCCEEDED : Outcome.OUTCOME_FAILED,
        ...(!succeeded && { error: { code: String(exit_code), message: `${id} did not work` } }),
      };
      const facts = (job: Job) => [
        ofJob("job.succeeded", job, {}, over),
        ...ofCommand("command.finished", job, { succeeded, exit_code: exit_code ?? 0 }, over),
      ];
      observed({ id, state: Job_State.SUCCESS, complete_time, result }, facts, when);
    },
    failed(id: string, when: When = {}) {
      const complete_time = timestamp(startedAt + (when.at ?? 0));
      const error = { code: 2, message: "no runner could set it up" };
      const over = { outcome: Outcome.OUTCOME_FAILED, error: { code: "2", message: error.message } };
      const facts = (job: Job) => [ofJob("job.failed", job, {}, over), ...withJob(job, over)];
      observed({ id, state: Job_State.ERROR, complete_time, error }, facts, when);
    },
    canceled(id: string, when: When = {}) {
      const cancel_time = timestamp(startedAt + (when.at ?? 0));
      const error = { code: 1, message: "canceled" };
      const over = { outcome: Outcome.OUTCOME_CANCELED, error: { code: "1", message: "canceled" } };
      const facts = (job: Job) => [ofJob("job.canceled", job, { reason: "requested" }, over), ...withJob(job, over)];
      observed({ id, state: Job_State.ERROR, cancel_time, error }, facts, when);
    },
    /** The job is no longer listed, and the server no longer answers about it. */
    lost(id: string, when: When = {}) {
      const job = known(id);
      jobs.delete(id);
      const over = { outcome: Outcome.OUTCOME_UNKNOWN, time_source: TimeSource.TIME_SOURCE_OBSERVED };
      frame("jobs", undefined, [ofJob("job.lost", job, {}, over), ...withJob(job, over)], when);
    },
    text: (id: string, line: string, index = 0n) =>
      add({
        session,
        channel: "jobs",
        kind: "terminal.written",
        subject: id,
        detail: { $case: "text", value: { text: line, output: { job: id, index, stream: "S", offset: index } } },
      }),

    /** A description in parts; `between` runs after each part but the last. */
    described(parts = 1, between: (part: number) => void = () => {}) {
      const all = [...resources.values()];
      const size = Math.ceil(all.length / parts);
      const originalOf = (part: number) => {
        const kinds = Map.groupBy(all.slice(part * size, (part + 1) * size), ({ kind }) => kind);
        const message = Resources.fromPartial({
          kinds: [...kinds].map(([kind, entries]) => ({
            kind,
            entries: entries.map(({ id, bytes }) => ({ id, bytes })),
          })),
        });
        return original("tapedeck.v1.Resources", Resources.encode(message).finish());
      };
      describeInParts(frame, "resources", { parts, entries: all.length, originalOf, between });
    },
    /** The resource existed before the first observation: only the next description reports it. */
    there<Kind extends ResourceKind>(kind: Kind, id: string, message: DeepPartial<MessageOf<Kind>>) {
      resources.set(`${kind}/${id}`, { kind, id, bytes: encoded(kind, id, message) });
    },
    /** The resource was added or changed. */
    reported<Kind extends ResourceKind>(
      kind: Kind,
      id: string,
      message: DeepPartial<MessageOf<Kind>>,
      when: When = {},
    ) {
      const verb = resources.has(`${kind}/${id}`) ? "changed" : "added";
      const bytes = encoded(kind, id, message);
      resources.set(`${kind}/${id}`, { kind, id, bytes });
      const detail = { $case: "thing" as const, value: { kind, id } };
      frame(
        "resources",
        original(resourceMessages[kind].type, bytes),
        [{ kind: `${kind}.${verb}`, subject: id, detail }],
        when,
      );
    },
    removed(kind: ResourceKind, id: string, when: When = {}) {
      resources.delete(`${kind}/${id}`);
      const detail = { $case: "thing" as const, value: { kind, id } };
      frame("resources", undefined, [{ kind: `${kind}.removed`, subject: id, detail }], when);
    },
  };
}

export type VagrantSession = ReturnType<typeof vagrantSession>;

type MessageOf<Kind extends ResourceKind> = ReturnType<(typeof resourceMessages)[Kind]["message"]["decode"]>;

/** Ids as Vagrant creates them: later ones are greater. */
export function ulid(number: number): string {
  return `01KABC${number.toString(32).toUpperCase().padStart(20, "0")}`;
}

const encoders: {
  readonly [Kind in ResourceKind]: (
    resource_id: string,
    message: DeepPartial<MessageOf<Kind>>,
  ) => { finish(): Uint8Array };
} = {
  target: (resource_id, message) => Target.encode(Target.fromPartial({ resource_id, ...message })),
  project: (resource_id, message) => Project.encode(Project.fromPartial({ resource_id, ...message })),
  basis: (resource_id, message) => Basis.encode(Basis.fromPartial({ resource_id, ...message })),
  box: (resource_id, message) => Box.encode(Box.fromPartial({ resource_id, ...message })),
  runner: (id, message) => Runner.encode(Runner.fromPartial({ id, ...message })),
};

function encoded<Kind extends ResourceKind>(kind: Kind, id: string, message: DeepPartial<MessageOf<Kind>>): Buffer {
  return Buffer.from(encoders[kind](id, message).finish());
}

function commandOp(command: string): NonNullable<DeepPartial<Job>["operation"]> {
  return { $case: "command", value: { command } };
}

function describedOf({ operation, scope, target_runner }: Job): DeepPartial<JobDetail> {
  const isCommand = operation?.$case === "command";
  return {
    operation: operation?.$case ?? "",
    ...(isCommand && { command: operation.value.command, args: ["--provision", "web1"] }),
    scope: scope?.$case ?? "",
    scope_id: scope?.value.resource_id ?? "",
    scope_name: scope?.value.name ?? "",
    runner: target_runner?.target?.$case === "id" ? target_runner.target.value.id : "",
  };
}
