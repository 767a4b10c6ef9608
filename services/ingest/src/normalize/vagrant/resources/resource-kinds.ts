import { VagrantResourceDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { Basis, Box, Operation_PhysicalState, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";
import { name } from "../../facts.ts";
import { type CanonicalFields, identified } from "./canonical.ts";

export const resourceKinds = ["target", "project", "basis", "box", "runner"] as const;

/** The kind's name in observations and descriptions. */
export type ResourceKind = (typeof resourceKinds)[number];

/** A decoded entry. */
export type ResourceEntry = {
  readonly detail: VagrantResourceDetail;
  /** The fields whose changes are reported. */
  readonly fields: CanonicalFields;
};

export type ResourceKindRules = {
  readonly plural: string;
  /** Full name of the message of an entry. */
  readonly messageType: string;
  /** Throws for bytes that are no such message. */
  readonly read: (bytes: Uint8Array) => DecodedResource;
};

type DecodedResource = { readonly about: Partial<VagrantResourceDetail>; readonly fields: CanonicalFields };

const kinds: Readonly<Record<ResourceKind, ResourceKindRules>> = {
  target: { plural: "targets", messageType: "hashicorp.vagrant.Target", read: readTarget },
  project: { plural: "projects", messageType: "hashicorp.vagrant.Project", read: readProject },
  basis: { plural: "bases", messageType: "hashicorp.vagrant.Basis", read: readBasis },
  box: { plural: "boxes", messageType: "hashicorp.vagrant.Box", read: readBox },
  runner: { plural: "runners", messageType: "hashicorp.vagrant.Runner", read: readRunner },
};

export function isResourceKind(kind: string): kind is ResourceKind {
  return Object.hasOwn(kinds, kind);
}

export function pluralOf(kind: ResourceKind): string {
  return kinds[kind].plural;
}

export function messageTypeOf(kind: ResourceKind): string {
  return kinds[kind].messageType;
}

/** Throws for bytes that can't be read. */
export function decodeResource(kind: ResourceKind, id: string, bytes: Uint8Array): ResourceEntry {
  const { about, fields } = kinds[kind].read(bytes);
  const { name: called = "", parent_id = "", parent_name = "" } = about;
  const { provider = "", version = "", directory = "" } = about;
  const names = { name: name(called), parent_id: name(parent_id), parent_name: name(parent_name) };
  const ofBox = { provider: name(provider), version: name(version), directory: name(directory) };
  return { detail: VagrantResourceDetail.create({ ...about, kind, id, ...names, ...ofBox }), fields };
}

function readTarget(bytes: Uint8Array): DecodedResource {
  const target = Target.decode(bytes);
  const { resource_id, name, project, parent, subtargets, state } = target;
  // The server answers every target that was stored before as its own parent.
  const isOwnParent = parent?.resource_id === resource_id;
  return {
    about: {
      name,
      parent_id: project?.resource_id ?? "",
      parent_name: project?.name ?? "",
      state: stateName(state),
    },
    fields: {
      ...target,
      project: identified(project),
      parent: isOwnParent ? undefined : identified(parent),
      subtargets: subtargets.map(identified),
    },
  };
}

function readProject(bytes: Uint8Array): DecodedResource {
  const project = Project.decode(bytes);
  const { name, basis, targets } = project;
  return {
    about: { name, parent_id: basis?.resource_id ?? "", parent_name: basis?.name ?? "" },
    fields: { ...project, basis: identified(basis), targets: targets.map(identified) },
  };
}

function readBasis(bytes: Uint8Array): DecodedResource {
  const basis = Basis.decode(bytes);
  return { about: { name: basis.name }, fields: { ...basis, projects: basis.projects.map(identified) } };
}

function readBox(bytes: Uint8Array): DecodedResource {
  // The time is 1970 in boxes that are read back, and that of the call in others.
  const { last_update: _, ...fields } = Box.decode(bytes);
  const { name, provider, version, directory } = fields;
  return { about: { name, provider, version, directory }, fields };
}

function readRunner(bytes: Uint8Array): DecodedResource {
  return { about: {}, fields: { ...Runner.decode(bytes) } };
}

/** "NOT_CREATED"; the number of a state that is not known. */
function stateName(state: number): string {
  return Object.entries(Operation_PhysicalState).find(([, number]) => number === state)?.[0] ?? String(state);
}
