import { status } from "@grpc/grpc-js";
import type { Job, QueueJobRequest, Ref_Runner, Runner } from "@tapedeck/proto/vagrant/vagrant";
import { Panic, Refusal } from "../status.ts";
import { basisRef, projectRef, type ServerDatabase, shortProjectRef, shortTargetRef } from "./database.ts";
import { invalid, needed } from "./records.ts";
import { goDuration } from "./stamps.ts";
import type { Generation } from "./targets.ts";

type Scope = Job["scope"];

/** The job to queue, and its lifetime (ns). Throws the refusals of the real server, and what ends it. */
export function readQueueRequest(
  request: QueueJobRequest,
  { database, generation }: { readonly database: ServerDatabase; readonly generation: Generation },
): { readonly job: Job; readonly expiresIn: bigint | undefined } {
  const job = needed(request.job, "job");
  if (job.id !== "") throw new Refusal(status.INVALID_ARGUMENT, "job.id: must be blank");
  const expiresIn = request.expires_in === "" ? undefined : goDuration(request.expires_in);
  if (request.expires_in !== "" && expiresIn === undefined) {
    throw new Refusal(status.FAILED_PRECONDITION, `invalid expiry duration: ${JSON.stringify(request.expires_in)}`);
  }
  const operation = job.operation?.$case;
  // Whether one without any survives was not tried; those that do were.
  if (operation === undefined || !storable[generation].includes(operation)) {
    throw new Panic(`QueueJob with operation ${operation ?? "none"}`);
  }
  const scope = storedScope(database, job.scope);
  const { state: _, queue_time, assign_time, ack_time, complete_time, error, result, cancel_time, ...given } = job;
  return { job: { ...given, scope, state: 0, expire_time: undefined }, expiresIn };
}

const withInit = ["noop", "init", "command"];
const storable: Readonly<Record<Generation, readonly string[]>> = {
  "2.3": withInit,
  "2.4": [...withInit, "init_basis", "init_project"],
};

/** The scope as it is read back: shortened. */
function storedScope(database: ServerDatabase, scope: Scope): Scope {
  if (scope === undefined) return undefined;
  const { resource_id: id } = scope.value;
  const stored = {
    basis: () => ({ $case: "basis" as const, value: basisRef(database, id) }),
    project: () => ({ $case: "project" as const, value: shortProjectRef(database, id) }),
    target: () => ({ $case: "target" as const, value: shortTargetRef(database, id) }),
  }[scope.$case]();
  if (stored.value === undefined) throw invalid(`failed to locate ${scope.$case} (record not found)`);
  return stored as Scope;
}

/** The job as the runner gets it, with everything that its scope is in. */
export function assignedJob(database: ServerDatabase, job: Job): Job {
  const { scope } = job;
  if (scope?.$case === "project") {
    const value = projectRef(database, scope.value.resource_id) ?? scope.value;
    return { ...job, scope: { $case: "project", value } };
  }
  if (scope?.$case === "target") {
    const target = database.targets.get(scope.value.resource_id);
    const project = projectRef(database, target?.project?.resource_id);
    return { ...job, scope: { $case: "target", value: { ...scope.value, project } } };
  }
  return job;
}

export function accepts(runner: Runner, target: Ref_Runner | undefined): boolean {
  if (target?.target?.$case === "id") return target.target.value.id === runner.id;
  return target?.target?.$case === "any" && !runner.by_id_only;
}

/** Reading such a row ends the process; and no process can start that has to. */
export function unreadableBecause({ labels, data_source_overrides, target_runner }: Job): string | undefined {
  if (Object.keys(labels).length > 0) return "labels";
  if (Object.keys(data_source_overrides).length > 0) return "data_source_overrides";
  return target_runner?.target === undefined ? "no target_runner" : undefined;
}
