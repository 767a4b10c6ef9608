import {
  FindBasisRequest,
  FindBoxRequest,
  FindProjectRequest,
  FindTargetRequest,
  GetBasisRequest,
  GetBoxRequest,
  GetJobRequest,
  GetProjectRequest,
  GetRunnerRequest,
  GetTargetRequest,
  GetVersionInfoResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { holding } from "@tapedeck/shared/descriptors/message-fields";
import type { CallContext } from "../../call-context.ts";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import type { QueryClient } from "../../query-client.ts";
import type { EncodedAnswer } from "../encoded-answer.ts";
import { type CollectionName, readCollection } from "../read-collection.ts";
import { findBasis, findBox, findProject, findTarget, type Rows, recordOf } from "./find.ts";
import { findJob } from "./jobs.ts";
import type { ReadName, UnaryMethod } from "./methods.ts";
import { basisRef, boxRef, projectRef, targetRef } from "./refs.ts";
import { decoded, type RequestType, required } from "./requests.ts";

export type ReadDeps = {
  readonly query: QueryClient;
  /** For all jobs of a source: they may be 64 MiB, and take three times that while they become one message. */
  readonly largeAnswers: TimedSemaphore;
};

/** The collection that a Get or Find reads, and the field of the response that the record goes into. */
type RecordAnswer = { readonly from: CollectionName<"vagrant">; readonly field: number };

const bases = { from: "bases", field: 1 } as const;
const projects = { from: "projects", field: 1 } as const;
const targets = { from: "targets", field: 1 } as const;
const boxes = { from: "boxes", field: 1 } as const;
// Some responses to Find have field 2 where those to Get have field 1.
const inSecondField = { field: 2 } as const;

/** The methods that are answered from the record. Records and jobs are sent as they were recorded, never encoded again. */
export function vagrantReads(deps: ReadDeps): Readonly<Record<ReadName, UnaryMethod>> {
  return {
    async getVersionInfo(_, context) {
      const { head, rows } = await readCollection(deps, "vagrant", "version", context);
      return { head, bytes: rows[0]?.bytes ?? GetVersionInfoResponse.encode(unknownVersion).finish() };
    },

    getBasis: record(deps, GetBasisRequest, bases, ({ basis }) => byId("basis", basis)),
    findBasis: record(deps, FindBasisRequest, { ...bases, ...inSecondField }, ({ basis }) => {
      const reference = required("basis", basis);
      return { pick: (rows) => findBasis(rows, reference), key: reference.resource_id };
    }),
    listBasis: list(deps, "bases", basisRef),

    getProject: record(deps, GetProjectRequest, projects, ({ project }) => byId("project", project)),
    findProject: record(deps, FindProjectRequest, { ...projects, ...inSecondField }, ({ project }) => {
      const reference = required("project", project);
      required("basis", reference.basis);
      return { pick: (rows) => findProject(rows, reference) };
    }),
    listProjects: list(deps, "projects", projectRef),

    getTarget: record(deps, GetTargetRequest, targets, ({ target }) => byId("target", target)),
    findTarget: record(deps, FindTargetRequest, { ...targets, ...inSecondField }, ({ target }) => {
      const reference = required("target", target);
      return { pick: (rows) => findTarget(rows, reference), key: reference.resource_id };
    }),
    listTargets: list(deps, "targets", targetRef),

    getBox: record(deps, GetBoxRequest, boxes, ({ box }) => byId("box", box)),
    findBox: record(deps, FindBoxRequest, boxes, ({ box }) => {
      const reference = required("box", box);
      return { pick: (rows) => findBox(rows, reference), key: reference.resource_id };
    }),
    listBoxes: list(deps, "boxes", boxRef),

    getRunner: request(GetRunnerRequest, async ({ runner_id }, context) => {
      const { head, rows } = await readCollection(deps, "vagrant", "runners", context, runner_id);
      return { head, bytes: recordOf(rows, "runner", runner_id) };
    }),

    getJob: request(GetJobRequest, async ({ job_id }, context) => {
      const { head, bytes } = await findJob(deps, job_id, context);
      return { head, bytes };
    }),
    listJobs: limited(
      deps.largeAnswers,
      list(deps, "jobs", (job) => job),
    ),
  };
}

function request<Request>(
  type: RequestType<Request>,
  answer: (request: Request, context: CallContext) => Promise<EncodedAnswer>,
): UnaryMethod {
  return async (bytes, context) => answer(decoded(type, bytes), context);
}

/** Which record is the answer: undefined for none. `key`: only the record with this key is read; empty: all are. */
type Choice = { readonly pick: (rows: Rows) => Uint8Array | undefined; readonly key?: string };

/** Answers with the record that `choose` picks, or with an empty message where it picks none. */
function record<Request>(
  deps: ReadDeps,
  type: RequestType<Request>,
  { from, field }: RecordAnswer,
  choose: (request: Request) => Choice,
): UnaryMethod {
  return request(type, async (message, context) => {
    // A wrong request is refused before query is asked.
    const { pick, key } = choose(message);
    const { head, rows } = await readCollection(deps, "vagrant", from, context, key);
    const bytes = pick(rows);
    return { head, bytes: holding(field, bytes === undefined ? [] : [bytes]) };
  });
}

function list(deps: ReadDeps, from: CollectionName<"vagrant">, itemOf: (bytes: Uint8Array) => Uint8Array): UnaryMethod {
  return async (_, context) => {
    const { head, rows } = await readCollection(deps, "vagrant", from, context);
    const items = rows.map(({ bytes }) => itemOf(bytes));
    return { head, bytes: holding(1, items) };
  };
}

/** The permit is held until the call ends, because the answer is in memory until its client has taken it. */
function limited(permits: TimedSemaphore, answer: UnaryMethod): UnaryMethod {
  return async (bytes, context) => {
    const release = await permits.acquire(context.signal);
    try {
      return await answer(bytes, context);
    } catch (error) {
      release();
      throw error;
    }
  };
}

/** A Get finds a record by its resource_id alone. */
function byId(kind: string, ref: { readonly resource_id: string } | undefined): Choice {
  const { resource_id } = required(kind, ref);
  return { pick: (rows) => recordOf(rows, kind, resource_id), key: resource_id };
}

const one = { current: 1, minimum: 1 };

/** Answered before the upstream has reported its version: the protocol that Tapedeck speaks, and no version. */
const unknownVersion: GetVersionInfoResponse = { info: { api: one, entrypoint: one, version: "" } };
