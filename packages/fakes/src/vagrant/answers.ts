import { status } from "@grpc/grpc-js";
import { type GetVersionInfoResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { boxCalls } from "./state/boxes.ts";
import type { ServerDatabase } from "./state/database.ts";
import type { Jobs } from "./state/jobs.ts";
import { basisAndProjectCalls } from "./state/projects.ts";
import { getRunner } from "./state/runners.ts";
import type { Stamps } from "./state/stamps.ts";
import { type Generation, targetCalls } from "./state/targets.ts";
import { Refusal } from "./status.ts";

export type UnaryOptions = {
  readonly database: ServerDatabase;
  readonly stamps: Stamps;
  readonly generation: Generation;
  readonly version: string;
  /** The jobs of the process that runs now. */
  readonly jobs: () => Jobs;
};

/** The bytes of an answer to those of a request; throws a Refusal or a Panic. */
export type AnswerBytes = (request: Buffer) => Buffer;

/** All unary methods by their name on the wire. */
export function unaryAnswers(options: UnaryOptions): ReadonlyMap<string, AnswerBytes> {
  const { database, stamps, generation, version, jobs } = options;
  const places = basisAndProjectCalls(database, stamps);
  const targets = targetCalls(database, stamps, generation);
  const boxes = boxCalls(database, stamps);
  const service = VagrantService;
  const noTokens = () => {
    throw new Refusal(status.UNIMPLEMENTED, "method not implemented");
  };
  return new Map([
    on(service.getVersionInfo, () => versionInfo(version)),
    on(service.upsertBasis, places.upsertBasis),
    on(service.getBasis, places.getBasis),
    on(service.findBasis, places.findBasis),
    on(service.listBasis, places.listBasis),
    on(service.upsertProject, places.upsertProject),
    on(service.getProject, places.getProject),
    on(service.findProject, places.findProject),
    on(service.listProjects, places.listProjects),
    on(service.upsertTarget, targets.upsertTarget),
    on(service.deleteTarget, targets.deleteTarget),
    on(service.getTarget, targets.getTarget),
    on(service.findTarget, targets.findTarget),
    on(service.listTargets, targets.listTargets),
    on(service.upsertBox, boxes.upsertBox),
    on(service.deleteBox, boxes.deleteBox),
    on(service.getBox, boxes.getBox),
    on(service.listBoxes, boxes.listBoxes),
    on(service.findBox, boxes.findBox),
    on(service.queueJob, (request) => jobs().queueJob(request)),
    on(service.cancelJob, (request) => jobs().cancelJob(request)),
    on(service.getJob, (request) => jobs().getJob(request)),
    on(service.listJobs, () => jobs().listJobs()),
    on(service.validateJob, (request) => jobs().validateJob(request)),
    on(service.pruneOldJobs, () => jobs().pruneOldJobs()),
    on(service.getRunner, (request) => getRunner(database, request)),
    on(service.bootstrapToken, noTokens),
    on(service.generateInviteToken, noTokens),
    on(service.generateLoginToken, noTokens),
    on(service.convertInviteToken, noTokens),
  ]);
}

type Method<Q, A> = {
  readonly path: string;
  readonly requestDeserialize: (bytes: Buffer) => Q;
  readonly responseSerialize: (answer: A) => Buffer;
};

function on<Q, A>(method: Method<Q, A>, answer: (request: Q) => A): readonly [string, AnswerBytes] {
  return [nameOf(method), (bytes) => method.responseSerialize(answer(read(method, bytes)))];
}

function read<Q>({ requestDeserialize }: Pick<Method<Q, never>, "requestDeserialize">, bytes: Buffer): Q {
  try {
    return requestDeserialize(bytes);
  } catch {
    throw new Refusal(status.INTERNAL, "grpc: error unmarshalling request");
  }
}

/** The name of a method as on the wire: "_ListJobs". */
export function nameOf({ path }: { readonly path: string }): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function versionInfo(version: string): GetVersionInfoResponse {
  const both = { current: 1, minimum: 1 };
  return { info: { api: both, entrypoint: both, version } };
}
