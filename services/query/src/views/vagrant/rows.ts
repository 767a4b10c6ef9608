import type { Any } from "@tapedeck/proto/google/protobuf/any";
import {
  type Basis,
  type Box,
  component_TypeToJSON,
  operation_PhysicalStateToJSON,
  type Project,
  type Runner,
  type Target,
  Target_Machine,
} from "@tapedeck/proto/vagrant/vagrant";
import type {
  VagrantBasisRow,
  VagrantBoxRow,
  VagrantProjectRow,
  VagrantResourceRow,
  VagrantRunnerRow,
  VagrantTargetRow,
} from "../../db/schema.ts";
import { text } from "../../db/text.ts";
import { decoded } from "../states/message-of.ts";

export function targetRow(
  of: VagrantResourceRow,
  { name, project, state, provider, uuid, record }: Target,
): VagrantTargetRow {
  const machine = machineOf(record);
  return {
    ...of,
    name: text(name),
    project_id: text(project?.resource_id ?? ""),
    project_name: text(project?.name ?? ""),
    state: word(operation_PhysicalStateToJSON(state), state),
    provider: text(provider),
    uuid: text(uuid),
    machine_id: text(machine?.id ?? ""),
    machine_state: text(machine?.state?.id ?? ""),
    box_name: text(machine?.box?.name ?? ""),
    box_version: text(machine?.box?.version ?? ""),
  };
}

/** The machine that the provider made; undefined: none yet, or of an unknown type. */
function machineOf(record: Any | undefined): Target_Machine | undefined {
  if (!record?.type_url.endsWith("/hashicorp.vagrant.Target.Machine")) return undefined;
  return decoded(Target_Machine, record.value);
}

export function projectRow(of: VagrantResourceRow, { name, path, basis, remote_enabled }: Project): VagrantProjectRow {
  return {
    ...of,
    name: text(name),
    path: text(path),
    basis_id: text(basis?.resource_id ?? ""),
    basis_name: text(basis?.name ?? ""),
    remote_enabled,
  };
}

export function basisRow(of: VagrantResourceRow, { name, path, remote_enabled }: Basis): VagrantBasisRow {
  return { ...of, name: text(name), path: text(path), remote_enabled };
}

export function boxRow(
  of: VagrantResourceRow,
  { name, provider, version, directory, metadata_url }: Box,
): VagrantBoxRow {
  return {
    ...of,
    name: text(name),
    provider: text(provider),
    version: text(version),
    directory: text(directory),
    metadata_url: text(metadata_url),
  };
}

export function runnerRow(of: VagrantResourceRow, { by_id_only, components }: Runner): VagrantRunnerRow {
  return {
    ...of,
    by_id_only,
    components: components.map(({ type, name }) => ({
      type: word(component_TypeToJSON(type), type),
      name: text(name),
    })),
  };
}

/** The name of an enum value; an unknown value is its number. */
function word(name: string, value: number): string {
  return name === "UNRECOGNIZED" ? String(value) : name;
}
