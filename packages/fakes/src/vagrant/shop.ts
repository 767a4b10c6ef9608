import {
  Job,
  type Job_CommandResult,
  type Job_Result,
  QueueJobRequest,
  QueueJobResponse,
  Runner,
  Target,
  UpsertBasisRequest,
  UpsertBasisResponse,
  UpsertProjectRequest,
  UpsertProjectResponse,
  UpsertTargetRequest,
  UpsertTargetResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import type { FakeVagrant } from "./server.ts";

export type Shop = {
  readonly basis: string;
  readonly project: string;
  readonly runner: string;
  /** Makes or changes a target; gives its resource_id. */
  readonly target: (target: Partial<Target>) => string;
  /** Queues a job with the command "up" unless given otherwise; returns its id. */
  readonly queue: (job?: Partial<Job>, expiresIn?: string) => string;
  /** A job that a runner has acked. */
  readonly run: (job?: Partial<Job>) => string;
};

/** A basis, a project and a runner on a fake, for tests that need a job and care for little else. */
export function setUpShop(fake: Pick<FakeVagrant, "call" | "jobs" | "database" | "newId">): Shop {
  const path = "/home/dev/.config/vagrant/default";
  const basisRequest = UpsertBasisRequest.fromPartial({ basis: { name: "default", path } });
  const made = fake.call("UpsertBasis", bytesOf(UpsertBasisRequest, basisRequest));
  const basis = UpsertBasisResponse.decode(made).basis?.resource_id ?? "";
  const where = { name: "shop", path: "/home/dev/shop", basis: { resource_id: basis } };
  const projectRequest = UpsertProjectRequest.fromPartial({ project: where });
  const added = fake.call("UpsertProject", bytesOf(UpsertProjectRequest, projectRequest));
  const project = UpsertProjectResponse.decode(added).project?.resource_id ?? "";
  const runner = fake.newId();
  fake.database.runners.set(runner, Runner.fromPartial({ id: runner, by_id_only: true, components: [{ type: 1 }] }));

  function queue(job: Partial<Job> = {}, expiresIn = ""): string {
    const request = { job: { ...upJob({ project, runner }), ...job }, expires_in: expiresIn };
    return QueueJobResponse.decode(fake.call("QueueJob", bytesOf(QueueJobRequest, request))).job_id;
  }

  return {
    basis,
    project,
    runner,
    target: (target) => {
      const request = { target: { ...Target.fromPartial({ project: { resource_id: project } }), ...target } };
      const answer = fake.call("UpsertTarget", bytesOf(UpsertTargetRequest, request));
      return UpsertTargetResponse.decode(answer).target?.resource_id ?? "";
    },
    queue,
    run(job) {
      const id = queue(job);
      fake.jobs.assign(id);
      fake.jobs.ack(id);
      return id;
    },
  };
}

/** The job that the command line queues for `vagrant up`. */
export function upJob({ project, runner }: Pick<Shop, "project" | "runner">): Job {
  return Job.fromPartial({
    scope: { $case: "project", value: { resource_id: project } },
    target_runner: { target: { $case: "id", value: { id: runner } } },
    data_source: { source: { $case: "local", value: {} } },
    operation: { $case: "command", value: { command: "up", component: { type: 1, name: "up" }, cli_args: {} } },
  });
}

/** The result that the runner reports at the end of a command. */
export function commandResult(run: Partial<Job_CommandResult>): Job_Result {
  return { run: { run_result: false, exit_code: 0, ...run } };
}

function bytesOf<T>(type: { readonly encode: (message: T) => { finish(): Uint8Array } }, message: T): Buffer {
  return Buffer.from(type.encode(message).finish());
}
