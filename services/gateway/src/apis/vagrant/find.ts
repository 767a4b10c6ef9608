import type { Ref_Box } from "@tapedeck/proto/vagrant/sdk/sdk";
import { Basis, Box, Project, Target } from "@tapedeck/proto/vagrant/vagrant";
import type { ReadState } from "../../query-client.ts";
import { invalid, recordNotFound, withoutParent } from "./errors.ts";
import { compareVersions, parseCondition, parseVersion } from "./versions.ts";

export type Rows = ReadState["rows"];

/** A record's bytes by its resource_id, or a runner's by its id. `kind` is for the error. */
export function recordOf(rows: Rows, kind: string, id: string): Uint8Array {
  return found(
    rows.find(({ key }) => key === id && id !== ""),
    kind,
  );
}

/** Finds by resource_id, else by whichever of name and path are set. */
export function findBasis(rows: Rows, reference: Basis): Uint8Array {
  if (reference.resource_id !== "") return recordOf(rows, "basis", reference.resource_id);
  return found(byNameAndPath(rows, Basis.decode, reference), "basis");
}

/** Finds by whichever of name and path are set. Ignores the basis, which a request must have, as Vagrant does. */
export function findProject(rows: Rows, reference: Project): Uint8Array {
  return found(byNameAndPath(rows, Project.decode, reference), "project");
}

/**
 * Finds by the first of these that is set: resource_id, project and name, part of the uuid. Refuses a name alone, which
 * is unique only within its project.
 */
export function findTarget(rows: Rows, { resource_id, project, name, uuid }: Target): Uint8Array {
  if (resource_id !== "") return recordOf(rows, "target", resource_id);
  if (name === "" && uuid === "") throw recordNotFound("target");
  if (project === undefined && uuid === "") throw withoutParent("target");
  const isMeant = (target: Target) =>
    project === undefined
      ? target.uuid.toLowerCase().includes(uuid.toLowerCase())
      : target.project?.resource_id === project.resource_id && target.name === name;
  return found(
    rows.find(({ bytes }) => isMeant(Target.decode(bytes))),
    "target",
  );
}

/**
 * Finds by resource_id; else, among the boxes of that name (and provider, where it is set), the box of that version, or
 * the newest box that fits a condition ("< 2"; any version above 0 without one). Undefined for none: Vagrant answers that
 * without an error.
 */
export function findBox(rows: Rows, { resource_id, name, version, provider }: Ref_Box): Uint8Array | undefined {
  if (resource_id !== "") return recordOf(rows, "box", resource_id);
  if (name === "") throw invalid("name: cannot be blank.");
  const condition = parseCondition(version || "> 0");
  const named = rows
    .map(({ bytes }) => ({ bytes, box: Box.decode(bytes) }))
    .filter(({ box }) => box.name === name && (provider === "" || box.provider === provider));
  const same = named.find(({ box }) => box.version === version);
  if (same !== undefined) return same.bytes;
  if (condition === undefined) throw invalid(`Malformed constraint: ${version}`);
  const fitting = named.flatMap(({ bytes, box }) => {
    const parsed = parseVersion(box.version);
    return parsed !== undefined && condition(parsed) ? [{ bytes, version: parsed }] : [];
  });
  return fitting.toSorted((a, b) => compareVersions(b.version, a.version))[0]?.bytes;
}

type NameAndPath = { readonly name: string; readonly path: string };

function byNameAndPath(rows: Rows, decode: (bytes: Uint8Array) => NameAndPath, { name, path }: NameAndPath) {
  if (name === "" && path === "") return undefined;
  return rows.find(({ bytes }) => {
    const row = decode(bytes);
    return (name === "" || row.name === name) && (path === "" || row.path === path);
  });
}

function found(row: Rows[number] | undefined, kind: string): Uint8Array {
  if (row === undefined) throw recordNotFound(kind);
  return row.bytes;
}
