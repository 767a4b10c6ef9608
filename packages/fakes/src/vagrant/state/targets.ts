import { status } from "@grpc/grpc-js";
import {
  type DeleteTargetRequest,
  type FindTargetRequest,
  type FindTargetResponse,
  type GetTargetRequest,
  type GetTargetResponse,
  type ListTargetsResponse,
  Operation_PhysicalState,
  Target,
  type UpsertTargetRequest,
  type UpsertTargetResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { Panic, Refusal } from "../status.ts";
import { projectRef, type ServerDatabase, shortProjectRef } from "./database.ts";
import { checkNoMetadata } from "./projects.ts";
import { checkPresent, checkUnique, needed, notFound, updated } from "./records.ts";
import type { Stamps } from "./stamps.ts";

/** The generation of a Vagrant server: 2.3.7, or 2.4.0 to 2.4.3. */
export type Generation = "2.3" | "2.4";

/** The calls about targets. */
export function targetCalls(database: ServerDatabase, stamps: Stamps, generation: Generation) {
  const { targets } = database;

  /** Every stored target names itself as its parent. */
  function shown(target: Target | undefined): Target {
    if (target === undefined) throw notFound("target");
    return { ...bare(target), parent: { resource_id: target.resource_id, name: target.name } };
  }

  function bare(target: Target): Target {
    return { ...target, project: projectRef(database, target.project?.resource_id) };
  }

  function upsertTarget({ target: given }: UpsertTargetRequest): UpsertTargetResponse {
    if (given === undefined) throw new Panic("UpsertTarget without a target");
    checkNoMetadata(given);
    const found = find(targets, given);
    const old = found ?? newTarget(given);
    const target = { ...updated(old, given, ["name", "uuid", "configuration", "provider"]), state: given.state };
    if (given.record !== undefined && (generation === "2.4" || old.record === undefined)) target.record = given.record;
    checkPresent(target, ["name"]);
    const among = (other: Target) => other.project?.resource_id === target.project?.resource_id;
    checkUnique(targets.values(), target, { fields: ["name"], among });
    if (target.uuid !== "") checkUnique(targets.values(), target, { fields: ["uuid"] });
    const parent = given.parent?.resource_id ?? "";
    // The real one writes the child's values over its parent, or loses it.
    if (parent !== "" && parent !== target.resource_id) targets.delete(parent);
    targets.set(target.resource_id, target);
    return { target: found === undefined ? bare(target) : shown(target) };
  }

  function newTarget({ resource_id, project }: Target): Target {
    const { resource_id: projectId } = needed(project, "project");
    if (projectRef(database, projectId) === undefined) throw notFound("project");
    return Target.fromPartial({ resource_id: resource_id || stamps.id(), project: { resource_id: projectId } });
  }

  function deleteTarget({ target }: DeleteTargetRequest): object {
    targets.delete(needed(target, "target").resource_id);
    return {};
  }

  function getTarget({ target }: GetTargetRequest): GetTargetResponse {
    return { target: shown(targets.get(needed(target, "target").resource_id)) };
  }

  function findTarget({ target }: FindTargetRequest): FindTargetResponse {
    if (target === undefined) throw new Panic("FindTarget without a target");
    return { target: shown(find(targets, target)) };
  }

  function listTargets(): ListTargetsResponse {
    const refs = [...targets.values()].map(({ resource_id, name, project }) => {
      return { resource_id, name, project: shortProjectRef(database, project?.resource_id) };
    });
    return { targets: refs };
  }

  return { upsertTarget, deleteTarget, getTarget, findTarget, listTargets };
}

/** By the first of these that is given: resource_id, project and name, part of the uuid. */
function find(targets: ReadonlyMap<string, Target>, { resource_id, project, name, uuid }: Target): Target | undefined {
  if (resource_id !== "" || (name === "" && uuid === "")) return targets.get(resource_id);
  const all = [...targets.values()];
  if (project !== undefined) {
    return all.find((each) => each.project?.resource_id === project.resource_id && each.name === name);
  }
  if (uuid === "") {
    const text = "cannot lookup target (proto reference does not include parent)";
    throw new Refusal(status.FAILED_PRECONDITION, text);
  }
  return all.find((each) => each.uuid.includes(uuid));
}

/** Does what a command's process does at its end: deletes the targets that do not exist at their provider. */
export function scrub({ targets }: ServerDatabase): void {
  const destroyedStates: Operation_PhysicalState[] = [
    Operation_PhysicalState.NOT_CREATED,
    Operation_PhysicalState.DESTROYED,
  ];
  for (const { resource_id, state } of [...targets.values()])
    if (destroyedStates.includes(state)) targets.delete(resource_id);
}
