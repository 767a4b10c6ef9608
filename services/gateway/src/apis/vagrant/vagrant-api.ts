import {
  FindBasisRequest,
  FindBoxRequest,
  FindProjectRequest,
  FindTargetRequest,
  GetBasisRequest,
  GetBoxRequest,
  GetJobRequest,
  GetJobStreamRequest,
  GetLogStreamRequest,
  GetProjectRequest,
  GetRunnerRequest,
  GetTargetRequest,
  GetVersionInfoResponse,
  type VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { WaitingLine } from "../../limits/semaphore.ts";
import { absent, notOffered, unreadableRequest } from "./errors.ts";
import { findBasis, findBox, findProject, findTarget, recordOf } from "./find.ts";
import { jobStream, type VagrantStream } from "./job-stream/job-stream.ts";
import { findJob } from "./jobs.ts";
import { logStream } from "./log-stream/log-stream.ts";
import { type Collection, type Read, read } from "./read.ts";
import { basisRef, boxRef, projectRef, targetRef } from "./refs.ts";
import { holding } from "./wire.ts";
import type { WriteName } from "./writes/write-names.ts";
import { type WriteDeps, writing } from "./writes/writes.ts";

/** The encoded answer of one call; a write has no head: it is about now, at the upstream. */
export type VagrantAnswer = { readonly head?: AnswerHead; readonly bytes: Uint8Array };

export type Unary = (request: Uint8Array, context: CallContext) => Promise<VagrantAnswer>;

export type Streaming = (request: Uint8Array, context: CallContext) => Promise<VagrantStream>;

/** Methods whose client sends a stream: only a server of our own could offer them. */
type OfRunners = "runnerConfig" | "runnerJobStream";
type StreamName = "getJobStream" | "getLogStream";
type UnaryName = Exclude<keyof typeof VagrantService, OfRunners | StreamName>;

/**
 * hashicorp.vagrant.Vagrant by VagrantService's names of the methods: reads from the record, writes by way of the
 * upstream. Requests are bytes. Everything throws UpstreamError for what Vagrant refuses too, and TapedeckError
 * (docs/api.md#errors) for the rest.
 */
export type VagrantApi = {
  readonly unary: Readonly<Record<UnaryName, Unary>>;
  readonly streams: Readonly<Record<StreamName, Streaming>>;
  /** What is answered to those that are not offered. */
  readonly runners: Readonly<Record<OfRunners, () => never>>;
};

export type VagrantDeps = WriteDeps & {
  /** For all jobs of a source: they may be 64 MiB, and take three times that while they become one message. */
  readonly largeAnswers: WaitingLine;
};

/** Knows no transport. Records and jobs go out as they were recorded: nothing encodes them again. */
export function vagrantApi(deps: VagrantDeps): VagrantApi {
  const write = writing(deps);

  /** A read, of a request that was understood. */
  function reading<R>(type: Decodes<R>, answer: (request: R, context: CallContext) => Promise<VagrantAnswer>): Unary {
    return async (bytes, context) => answer(decoded(type, bytes), context);
  }

  /** The answer is in field `field`; where there is none, it is empty. */
  function asking<R>(
    type: Decodes<R>,
    { of, field }: { readonly of: Collection; readonly field: number },
    choose: (request: R) => (rows: Read["rows"]) => Uint8Array | undefined,
  ): Unary {
    return reading(type, async (request, context) => {
      // What is wrong with the request is said before anybody is asked.
      const chosen = choose(request);
      const { head, rows } = await read(deps, of, context);
      const bytes = chosen(rows);
      return { head, bytes: holding(field, bytes === undefined ? [] : [bytes]) };
    });
  }

  function listing(of: Collection, itemOf: (bytes: Uint8Array) => Uint8Array): Unary {
    return async (_, context) => {
      const { head, rows } = await read(deps, of, context);
      return {
        head,
        bytes: holding(
          1,
          rows.map(({ bytes }) => itemOf(bytes)),
        ),
      };
    };
  }

  /** The turn ends with the call: until its client has taken the answer, it is held. */
  function inTurn(answer: Unary): Unary {
    return async (request, context) => {
      const endTurn = await deps.largeAnswers.take(context.signal);
      try {
        return await answer(request, context);
      } catch (error) {
        endTurn();
        throw error;
      }
    };
  }

  function streaming<R>(
    type: Decodes<R>,
    open: (deps: WriteDeps, request: R, context: CallContext) => Promise<VagrantStream>,
  ): Streaming {
    return async (bytes, context) => open(deps, decoded(type, bytes), context);
  }

  function sending(method: WriteName): Unary {
    return async (request, context) => ({ bytes: await write(method, request, context) });
  }

  const bases = { of: "bases", field: 1 } as const;
  const projects = { of: "projects", field: 1 } as const;
  const targets = { of: "targets", field: 1 } as const;
  const boxes = { of: "boxes", field: 1 } as const;
  // Of the responses to Find some have 2 where those to Get have 1.
  const second = { field: 2 } as const;

  return {
    unary: {
      async getVersionInfo(_, context) {
        const { head, rows } = await read(deps, "version", context);
        return { head, bytes: rows[0]?.bytes ?? GetVersionInfoResponse.encode(untold).finish() };
      },

      getBasis: asking(GetBasisRequest, bases, ({ basis }) => byId("basis", basis)),
      findBasis: asking(FindBasisRequest, { ...bases, ...second }, ({ basis }) => {
        const wanted = needed("basis", basis);
        return (rows) => findBasis(rows, wanted);
      }),
      listBasis: listing("bases", basisRef),

      getProject: asking(GetProjectRequest, projects, ({ project }) => byId("project", project)),
      findProject: asking(FindProjectRequest, { ...projects, ...second }, ({ project }) => {
        const wanted = needed("project", project);
        needed("basis", wanted.basis);
        return (rows) => findProject(rows, wanted);
      }),
      listProjects: listing("projects", projectRef),

      getTarget: asking(GetTargetRequest, targets, ({ target }) => byId("target", target)),
      findTarget: asking(FindTargetRequest, { ...targets, ...second }, ({ target }) => {
        const wanted = needed("target", target);
        return (rows) => findTarget(rows, wanted);
      }),
      listTargets: listing("targets", targetRef),

      getBox: asking(GetBoxRequest, boxes, ({ box }) => byId("box", box)),
      findBox: asking(FindBoxRequest, boxes, ({ box }) => {
        const wanted = needed("box", box);
        return (rows) => findBox(rows, wanted);
      }),
      listBoxes: listing("boxes", boxRef),

      getRunner: reading(GetRunnerRequest, async ({ runner_id }, context) => {
        const { head, rows } = await read(deps, "runners", context, runner_id);
        return { head, bytes: recordOf(rows, "runner", runner_id) };
      }),

      getJob: reading(GetJobRequest, async ({ job_id }, context) => {
        const { head, bytes } = await findJob(deps, job_id, context);
        return { head, bytes };
      }),
      listJobs: inTurn(listing("jobs", (job) => job)),

      queueJob: sending("queueJob"),
      cancelJob: sending("cancelJob"),
      validateJob: sending("validateJob"),
      pruneOldJobs: sending("pruneOldJobs"),
      upsertBasis: sending("upsertBasis"),
      upsertProject: sending("upsertProject"),
      upsertTarget: sending("upsertTarget"),
      deleteTarget: sending("deleteTarget"),
      upsertBox: sending("upsertBox"),
      deleteBox: sending("deleteBox"),

      bootstrapToken: noTokens,
      generateInviteToken: noTokens,
      generateLoginToken: noTokens,
      convertInviteToken: noTokens,
    },
    streams: {
      getJobStream: streaming(GetJobStreamRequest, jobStream),
      getLogStream: streaming(GetLogStreamRequest, logStream),
    },
    runners: { runnerConfig: noRunners, runnerJobStream: noRunners },
  };
}

const one = { current: 1, minimum: 1 };

/** Before the upstream has told its version: the protocol that Tapedeck speaks, and no version. */
const untold: GetVersionInfoResponse = { info: { api: one, entrypoint: one, version: "" } };

/** Room is left for both: a server of our own would have runners to give jobs to, and tokens to hand out. */
function noRunners(): never {
  throw notOffered(
    "Tapedeck records a Vagrant server and has no runners of its own: a runner has to be connected to the server itself",
  );
}

async function noTokens(): Promise<never> {
  throw notOffered("Tapedeck hands out no Vagrant tokens, and no Vagrant server since 2.3.7 does");
}

/** Of a Get: by resource_id alone. */
function byId(kind: string, ref: { readonly resource_id: string } | undefined) {
  const { resource_id } = needed(kind, ref);
  return (rows: Read["rows"]) => recordOf(rows, kind, resource_id);
}

function needed<T>(name: string, message: T | undefined): T {
  if (message === undefined) throw absent(name);
  return message;
}

type Decodes<R> = { readonly decode: (bytes: Uint8Array) => R };

function decoded<R>({ decode }: Decodes<R>, bytes: Uint8Array): R {
  try {
    return decode(bytes);
  } catch {
    throw unreadableRequest();
  }
}
