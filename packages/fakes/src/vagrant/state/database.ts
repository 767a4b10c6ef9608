import type { Ref_Basis, Ref_Project, Ref_Target } from "@tapedeck/proto/vagrant/sdk/sdk";
import type { Basis, Box, Job, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";

/**
 * What outlives a server's process, by resource_id (jobs and runners: id), in the order in which it was made. Several
 * processes can share one, as several vagrant commands do.
 */
export type ServerDatabase = {
  /** Without `projects`. */
  readonly bases: Map<string, Basis>;
  /** Without `targets`; the basis by its resource_id. */
  readonly projects: Map<string, Project>;
  /** The project by its resource_id; without `parent`. */
  readonly targets: Map<string, Target>;
  readonly boxes: Map<string, Box>;
  readonly runners: Map<string, Runner>;
  readonly jobs: Map<string, Job>;
};

export function makeDatabase(): ServerDatabase {
  return {
    bases: new Map(),
    projects: new Map(),
    targets: new Map(),
    boxes: new Map(),
    runners: new Map(),
    jobs: new Map(),
  };
}

/** A ref as lists and records have it; undefined if the basis is not there. */
export function basisRef({ bases }: ServerDatabase, id: string | undefined): Ref_Basis | undefined {
  const basis = bases.get(id ?? "");
  return basis && { resource_id: basis.resource_id, path: basis.path, name: basis.name };
}

/** With its basis. */
export function projectRef(database: ServerDatabase, id: string | undefined): Ref_Project | undefined {
  const short = shortProjectRef(database, id);
  const basis = basisRef(database, database.projects.get(id ?? "")?.basis?.resource_id);
  return short && { ...short, basis };
}

/** Without its basis, as in jobs and in the refs of targets. */
export function shortProjectRef({ projects }: ServerDatabase, id: string | undefined): Ref_Project | undefined {
  const project = projects.get(id ?? "");
  return project && { resource_id: project.resource_id, path: project.path, name: project.name };
}

/** Without its project, as in jobs. */
export function shortTargetRef({ targets }: ServerDatabase, id: string | undefined): Ref_Target | undefined {
  const target = targets.get(id ?? "");
  return target && { resource_id: target.resource_id, name: target.name };
}
