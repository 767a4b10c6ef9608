import { Ref_Basis, Ref_Box, Ref_Project, Ref_Target } from "@tapedeck/proto/vagrant/sdk/sdk";
import { Basis, Box, Project, Target } from "@tapedeck/proto/vagrant/vagrant";

// Vagrant's lists hold references to records, not the records.

export function basisRef(bytes: Uint8Array): Uint8Array {
  const { resource_id, path, name } = Basis.decode(bytes);
  return Ref_Basis.encode({ resource_id, path, name }).finish();
}

/** Includes the basis. */
export function projectRef(bytes: Uint8Array): Uint8Array {
  const { resource_id, path, name, basis } = Project.decode(bytes);
  return Ref_Project.encode({ resource_id, path, name, basis }).finish();
}

/** Includes the project, without its basis. */
export function targetRef(bytes: Uint8Array): Uint8Array {
  const { resource_id, name, project } = Target.decode(bytes);
  return Ref_Target.encode({ resource_id, name, project: project && { ...project, basis: undefined } }).finish();
}

export function boxRef(bytes: Uint8Array): Uint8Array {
  const { resource_id, name, version, provider } = Box.decode(bytes);
  return Ref_Box.encode({ resource_id, name, version, provider }).finish();
}
