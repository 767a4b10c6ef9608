import {
  Basis,
  type FindBasisRequest,
  type FindBasisResponse,
  type FindProjectRequest,
  type FindProjectResponse,
  type GetBasisRequest,
  type GetBasisResponse,
  type GetProjectRequest,
  type GetProjectResponse,
  type ListBasisResponse,
  type ListProjectsResponse,
  Project,
  type UpsertBasisRequest,
  type UpsertBasisResponse,
  type UpsertProjectRequest,
  type UpsertProjectResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { basisRef, projectRef, type ServerDatabase, shortProjectRef, shortTargetRef } from "./database.ts";
import { checkPresent, checkUnique, invalid, needed, notFound, updated } from "./records.ts";
import type { Stamps } from "./stamps.ts";

/** The calls about bases and projects. */
export function basisAndProjectCalls(database: ServerDatabase, stamps: Stamps) {
  return { ...basisCalls(database, stamps), ...projectCalls(database, stamps) };
}

function basisCalls(database: ServerDatabase, stamps: Stamps) {
  const { bases, projects } = database;

  function shownBasis(basis: Basis | undefined): Basis {
    if (basis === undefined) throw notFound("basis");
    const own = [...projects.values()].filter((project) => project.basis?.resource_id === basis.resource_id);
    return { ...basis, projects: own.flatMap(({ resource_id }) => shortProjectRef(database, resource_id) ?? []) };
  }

  function upsertBasis(request: UpsertBasisRequest): UpsertBasisResponse {
    const given = needed(request.basis, "basis");
    checkNoMetadata(given);
    const old = bases.get(given.resource_id) ?? Basis.fromPartial({ resource_id: given.resource_id || stamps.id() });
    const basis = updated(old, given, ["name", "path", "configuration"]);
    checkPresent(basis, ["name", "path"]);
    checkUnique(bases.values(), basis, { fields: ["name"] });
    checkUnique(bases.values(), basis, { fields: ["path"] });
    bases.set(basis.resource_id, basis);
    return { basis: shownBasis(basis) };
  }

  function getBasis({ basis }: GetBasisRequest): GetBasisResponse {
    return { basis: shownBasis(bases.get(needed(basis, "basis").resource_id)) };
  }

  function findBasis(request: FindBasisRequest): FindBasisResponse {
    const reference = needed(request.basis, "basis");
    if (reference.resource_id !== "") return { basis: shownBasis(bases.get(reference.resource_id)) };
    return { basis: shownBasis(byNameAndPath(bases.values(), reference)) };
  }

  function listBasis(): ListBasisResponse {
    return { basis: [...bases.keys()].flatMap((id) => basisRef(database, id) ?? []) };
  }

  return { upsertBasis, getBasis, findBasis, listBasis };
}

function projectCalls(database: ServerDatabase, stamps: Stamps) {
  const { projects, targets } = database;

  function shownProject(project: Project | undefined): Project {
    if (project === undefined) throw notFound("project");
    const own = [...targets.values()].filter((target) => target.project?.resource_id === project.resource_id);
    const refs = own.flatMap(({ resource_id }) => shortTargetRef(database, resource_id) ?? []);
    return { ...project, targets: refs, basis: basisRef(database, project.basis?.resource_id) };
  }

  function upsertProject(request: UpsertProjectRequest): UpsertProjectResponse {
    const given = needed(request.project, "project");
    checkNoMetadata(given);
    const old = projects.get(given.resource_id) ?? newProject(given);
    const project = updated(old, given, ["name", "path", "configuration"]);
    checkPresent(project, ["name", "path"]);
    const among = (other: Project) => other.basis?.resource_id === project.basis?.resource_id;
    checkUnique(projects.values(), project, { fields: ["name"], among });
    checkUnique(projects.values(), project, { fields: ["path"], among });
    projects.set(project.resource_id, project);
    return { project: shownProject(project) };
  }

  function newProject({ resource_id, basis }: Project): Project {
    const { resource_id: basisId } = needed(basis, "basis");
    if (basisRef(database, basisId) === undefined) throw notFound("basis");
    return Project.fromPartial({ resource_id: resource_id || stamps.id(), basis: { resource_id: basisId } });
  }

  function getProject({ project }: GetProjectRequest): GetProjectResponse {
    return { project: shownProject(projects.get(needed(project, "project").resource_id)) };
  }

  /** Requires a basis and ignores it. */
  function findProject(request: FindProjectRequest): FindProjectResponse {
    const reference = needed(request.project, "project");
    needed(reference.basis, "basis");
    return { project: shownProject(byNameAndPath(projects.values(), reference)) };
  }

  function listProjects(): ListProjectsResponse {
    return { projects: [...projects.keys()].flatMap((id) => projectRef(database, id) ?? []) };
  }

  return { upsertProject, getProject, findProject, listProjects };
}

type NameAndPath = { readonly name: string; readonly path: string };

function byNameAndPath<T extends NameAndPath>(records: Iterable<T>, { name, path }: NameAndPath): T | undefined {
  if (name === "" && path === "") return undefined;
  return [...records].find((each) => (name === "" || each.name === name) && (path === "" || each.path === path));
}

/** There is a field for it, and no way to store it. */
export function checkNoMetadata({ metadata }: Pick<Basis, "metadata">): void {
  if (Object.keys(metadata?.metadata ?? {}).length > 0) throw invalid("unsupported data type: metadata");
}
