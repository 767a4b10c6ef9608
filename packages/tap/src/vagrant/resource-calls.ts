import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "./message-fields.ts";

/** How all things of a kind are looked at. */
export type ThingCalls = {
  readonly kind: string;
  /** Absent where the server has no list. `ids` throws for an answer that can't be read. */
  readonly list?: { readonly path: string; readonly ids: (answer: Buffer) => readonly string[] };
  readonly get: { readonly path: string; readonly request: (id: string) => Buffer };
  /** The thing of the answer, encoded as it was; undefined if there is none. Throws for one that can't be read. */
  readonly thingOf: (answer: Buffer) => Buffer | undefined;
};

const { listTargets, getTarget, listProjects, getProject, listBasis, getBasis, listBoxes, getBox, getRunner } =
  VagrantService;

const idsOf = (refs: readonly { readonly resource_id: string }[]) => refs.map(({ resource_id }) => resource_id);

/** The rest of a reference is for people. */
const targetRef = (resource_id: string) => ({ resource_id, name: "" });
const placeRef = (resource_id: string) => ({ resource_id, path: "", name: "" });
const boxRef = (resource_id: string) => ({ resource_id, name: "", version: "", provider: "" });

/** `target`, `project`, `basis` and `box` of their answers. */
const inField1 = (answer: Buffer) => fieldsOf(answer, 1).at(-1);

export const thingCalls: readonly ThingCalls[] = [
  {
    kind: "target",
    list: { path: listTargets.path, ids: (answer) => idsOf(listTargets.responseDeserialize(answer).targets) },
    get: { path: getTarget.path, request: (id) => getTarget.requestSerialize({ target: targetRef(id) }) },
    thingOf: inField1,
  },
  {
    kind: "project",
    list: { path: listProjects.path, ids: (answer) => idsOf(listProjects.responseDeserialize(answer).projects) },
    get: { path: getProject.path, request: (id) => getProject.requestSerialize({ project: placeRef(id) }) },
    thingOf: inField1,
  },
  {
    kind: "basis",
    list: { path: listBasis.path, ids: (answer) => idsOf(listBasis.responseDeserialize(answer).basis) },
    get: { path: getBasis.path, request: (id) => getBasis.requestSerialize({ basis: placeRef(id) }) },
    thingOf: inField1,
  },
  {
    kind: "box",
    list: { path: listBoxes.path, ids: (answer) => idsOf(listBoxes.responseDeserialize(answer).boxes) },
    get: { path: getBox.path, request: (id) => getBox.requestSerialize({ box: boxRef(id) }) },
    thingOf: inField1,
  },
  {
    kind: "runner",
    get: { path: getRunner.path, request: (id) => getRunner.requestSerialize({ runner_id: id }) },
    thingOf: (answer) => answer,
  },
];
