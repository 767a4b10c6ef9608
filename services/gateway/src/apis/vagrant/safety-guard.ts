import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Job,
  QueueJobRequest,
  type Ref_Runner,
  UpsertBoxRequest,
  UpsertTargetRequest,
  ValidateJobRequest,
} from "@tapedeck/proto/vagrant/vagrant";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { asGoDecodes } from "./as-go-decodes.ts";
import { unreadableRequest } from "./errors.ts";
import type { WriteName } from "./methods.ts";

/** What decides, besides its bytes, whether a call is dangerous. */
export type ServerSituation = {
  /** Version of the running server; empty before the server has reported it. */
  readonly version: () => Promise<string>;
  /** Whether the record has more jobs of this source than `count`. */
  readonly hasMoreJobsThan: (count: number) => Promise<boolean>;
};

/**
 * Why this call would end a Vagrant server, keep it from starting again, or spoil its data (docs/upstreams/vagrant.md#dangerous-requests); undefined when it
 * would not. `request`: the bytes as the client sent them.
 * @throws UpstreamError for bytes that are not a request
 */
export async function dangerOf(
  method: WriteName,
  request: Uint8Array,
  situation: ServerSituation,
): Promise<string | undefined> {
  switch (method) {
    case "queueJob": {
      const { job } = asVagrantReads("QueueJobRequest", QueueJobRequest, request);
      return job && dangerOfJob(job, situation);
    }
    case "validateJob": {
      const { job } = asVagrantReads("ValidateJobRequest", ValidateJobRequest, request);
      // A job that Vagrant does not know does no harm. Only Vagrant can recognize an id that it may have given.
      if (job === undefined || !ulid.test(job.id) || !isNobody(job.target_runner)) return undefined;
      return "validating a job that exists without a target_runner crashes Vagrant: name the runner (target_runner)";
    }
    case "upsertTarget": {
      const { target } = asVagrantReads("UpsertTargetRequest", UpsertTargetRequest, request);
      if (target === undefined) return "UpsertTarget without a target crashes Vagrant";
      const { resource_id = "", name = "" } = target.parent ?? {};
      if ((resource_id === "" && name === "") || (resource_id !== "" && resource_id === target.resource_id)) {
        return undefined;
      }
      return "a target with a parent overwrites the parent's record in Vagrant: omit `parent`";
    }
    case "upsertBox": {
      const { box } = asVagrantReads("UpsertBoxRequest", UpsertBoxRequest, request);
      return box === undefined ? "UpsertBox without a box crashes Vagrant" : undefined;
    }
    case "pruneOldJobs":
      if (!(await situation.hasMoreJobsThan(retainedByPruning))) return undefined;
      return `PruneOldJobs keeps the ${retainedByPruning} oldest jobs and deletes the newest; Vagrant can't list any jobs afterwards`;
    default:
      return undefined;
  }
}

/** Every id of a job has this form. */
const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

/** The number of jobs that PruneOldJobs leaves. */
const retainedByPruning = 50;

async function dangerOfJob(job: Job, { version }: ServerSituation): Promise<string | undefined> {
  for (const field of ["labels", "data_source_overrides"] as const) {
    if (Object.keys(job[field]).length > 0) {
      return `a job with ${field} crashes Vagrant as soon as it is read, and keeps the server from starting again: omit ${field}`;
    }
  }
  if (isNobody(job.target_runner)) {
    return "a job without a target_runner keeps Vagrant's server from starting again: name the runner (target_runner)";
  }
  const operation = job.operation?.$case;
  switch (operation) {
    case "noop":
    case "init":
    case "command":
      return undefined;
    case "init_basis":
    case "init_project": {
      const running = await version();
      if (/^2\.([4-9]|\d\d)/.test(running)) return undefined;
      const found =
        running === "" ? "the one that runs has not reported its version yet" : `the one that runs is ${running}`;
      return `a job with the operation ${operation} crashes Vagrant before 2.4: ${found}`;
    }
    default:
      return `a job with ${operation === undefined ? "no operation that Vagrant can store" : `the operation ${operation}`} crashes Vagrant: noop, init and command can be queued`;
  }
}

/** No runner is named. */
function isNobody(runner: Ref_Runner | undefined): boolean {
  const target = runner?.target;
  return target === undefined || (target.$case === "id" && target.value.id === "");
}

/** Decodes a request as Go does, ignored fields included; see asGoDecodes. Maps have the right size and empty entries. */
function asVagrantReads<T>(
  name: string,
  { decode }: { readonly decode: (bytes: Uint8Array) => T },
  request: Uint8Array,
): T {
  const desc = messageType(`hashicorp.vagrant.${name}`);
  try {
    // This library merges the parts of a field that are apart on the wire, as Go's does.
    return decode(toBinary(desc, fromBinary(desc, asGoDecodes(desc, request))));
  } catch {
    throw unreadableRequest();
  }
}
