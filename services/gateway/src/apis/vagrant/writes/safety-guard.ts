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
import { asGoTakes } from "../as-go-takes.ts";
import { unreadableRequest } from "../errors.ts";
import type { WriteName } from "./write-names.ts";

/** What has to be known of a server to tell whether a call is dangerous. */
export type Circumstances = {
  /** Of the server that runs now; empty if it has not been told yet. */
  readonly version: () => Promise<string>;
  /** Whether the record has more jobs of this source than that. */
  readonly hasMoreJobsThan: (count: number) => Promise<boolean>;
};

/**
 * Why this call would end a Vagrant server, keep it from starting again, or spoil its data
 * (docs/upstreams/vagrant.md#dangerous-requests); undefined when it would not. Request bytes as the client sent them.
 * @throws UpstreamError for bytes that are no request
 */
export async function dangerOf(
  method: WriteName,
  request: Uint8Array,
  circumstances: Circumstances,
): Promise<string | undefined> {
  switch (method) {
    case "queueJob": {
      const { job } = asVagrantReads("QueueJobRequest", QueueJobRequest, request);
      return job && dangerOfJob(job, circumstances);
    }
    case "validateJob": {
      const { job } = asVagrantReads("ValidateJobRequest", ValidateJobRequest, request);
      // A job that Vagrant does not know does no harm, but of an id that it may have given only Vagrant can say that.
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
      return "a target with a parent overwrites the parent's record in Vagrant: leave `parent` away";
    }
    case "upsertBox": {
      const { box } = asVagrantReads("UpsertBoxRequest", UpsertBoxRequest, request);
      return box === undefined ? "UpsertBox without a box crashes Vagrant" : undefined;
    }
    case "pruneOldJobs":
      if (!(await circumstances.hasMoreJobsThan(keptByPruning))) return undefined;
      return `PruneOldJobs keeps the ${keptByPruning} oldest jobs and deletes the newest; Vagrant can't list any jobs afterwards`;
    default:
      return undefined;
  }
}

/** All ids of jobs are. */
const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

/** So many jobs PruneOldJobs leaves. */
const keptByPruning = 50;

async function dangerOfJob(job: Job, { version }: Circumstances): Promise<string | undefined> {
  for (const field of ["labels", "data_source_overrides"] as const) {
    if (Object.keys(job[field]).length > 0) {
      return `a job with ${field} crashes Vagrant as soon as it is read, and keeps the server from starting again: leave ${field} away`;
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
        running === "" ? "the one that runs has not said its version yet" : `the one that runs is ${running}`;
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

/** As Go reads it, down to what it leaves aside; see asGoTakes. Of a map it is known only whether it has entries. */
function asVagrantReads<T>(
  name: string,
  { decode }: { readonly decode: (bytes: Uint8Array) => T },
  request: Uint8Array,
): T {
  const desc = messageType(`hashicorp.vagrant.${name}`);
  try {
    // By way of a library that merges, as Go's does, the parts of a field that come apart on the wire.
    return decode(toBinary(desc, fromBinary(desc, asGoTakes(desc, request))));
  } catch {
    throw unreadableRequest();
  }
}
