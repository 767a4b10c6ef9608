import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";

export type ResourceKind = "target" | "project" | "basis" | "box" | "runner";

/** How the resources of one kind are polled. */
export type ResourceMethods = {
  readonly kind: ResourceKind;
  /** Absent where the server has no list. `ids` throws for an unreadable answer. */
  readonly list?: { readonly path: string; readonly ids: (answer: Buffer) => readonly string[] };
  readonly get: { readonly path: string; readonly request: (id: string) => Buffer };
  /** The resource in the answer, encoded as it was; undefined if there is none. Throws for an unreadable answer. */
  readonly resourceIn: (answer: Buffer) => Buffer | undefined;
};

const { listTargets, getTarget, listProjects, getProject, listBasis, getBasis, listBoxes, getBox, getRunner } =
  VagrantService;

const idsOf = (refs: readonly { readonly resource_id: string }[]) => refs.map(({ resource_id }) => resource_id);

/** The other fields of a reference are for people. */
const targetRef = (resource_id: string) => ({ resource_id, name: "" });
const projectRef = (resource_id: string) => ({ resource_id, path: "", name: "" });
const boxRef = (resource_id: string) => ({ resource_id, name: "", version: "", provider: "" });

/** The field that holds a target, project, basis or box in its answer. */
const inField1 = (answer: Buffer) => fieldsOf(answer, 1).at(-1);

/** The methods that list each kind of resource, and get one of it. */
export const resourceMethods: readonly ResourceMethods[] = [
  {
    kind: "target",
    list: { path: listTargets.path, ids: (answer) => idsOf(listTargets.responseDeserialize(answer).targets) },
    get: { path: getTarget.path, request: (id) => getTarget.requestSerialize({ target: targetRef(id) }) },
    resourceIn: inField1,
  },
  {
    kind: "project",
    list: { path: listProjects.path, ids: (answer) => idsOf(listProjects.responseDeserialize(answer).projects) },
    get: { path: getProject.path, request: (id) => getProject.requestSerialize({ project: projectRef(id) }) },
    resourceIn: inField1,
  },
  {
    kind: "basis",
    list: { path: listBasis.path, ids: (answer) => idsOf(listBasis.responseDeserialize(answer).basis) },
    get: { path: getBasis.path, request: (id) => getBasis.requestSerialize({ basis: projectRef(id) }) },
    resourceIn: inField1,
  },
  {
    kind: "box",
    list: { path: listBoxes.path, ids: (answer) => idsOf(listBoxes.responseDeserialize(answer).boxes) },
    get: { path: getBox.path, request: (id) => getBox.requestSerialize({ box: boxRef(id) }) },
    resourceIn: inField1,
  },
  {
    kind: "runner",
    get: { path: getRunner.path, request: (id) => getRunner.requestSerialize({ runner_id: id }) },
    resourceIn: (answer) => answer,
  },
];

/** What a call changes, by its full method. Other calls change nothing. */
export const changedBy: Readonly<Record<string, "jobs" | ResourceKind>> = {
  [VagrantService.queueJob.path]: "jobs",
  [VagrantService.cancelJob.path]: "jobs",
  [VagrantService.pruneOldJobs.path]: "jobs",
  [VagrantService.upsertBasis.path]: "basis",
  [VagrantService.upsertProject.path]: "project",
  [VagrantService.upsertTarget.path]: "target",
  [VagrantService.deleteTarget.path]: "target",
  [VagrantService.upsertBox.path]: "box",
  [VagrantService.deleteBox.path]: "box",
};
