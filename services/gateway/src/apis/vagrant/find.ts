import type { Ref_Box } from "@tapedeck/proto/vagrant/sdk/sdk";
import { Basis, Box, Project, Target } from "@tapedeck/proto/vagrant/vagrant";
import { invalid, recordNotFound, withoutParent } from "./errors.ts";
import type { Read } from "./read.ts";
import { compareVersions, parseCondition, parseVersion } from "./versions.ts";

type Rows = Read["rows"];

/** A record's bytes by its resource_id, or a runner's by its id: what all Gets go by. `kind` is for the error. */
export function recordOf(rows: Rows, kind: string, id: string): Uint8Array {
  return found(
    rows.find(({ key }) => key === id && id !== ""),
    kind,
  );
}

/** By resource_id, else by name and path, those of them that are set. */
export function findBasis(rows: Rows, wanted: Basis): Uint8Array {
  if (wanted.resource_id !== "") return recordOf(rows, "basis", wanted.resource_id);
  return found(byNameAndPath(rows, Basis.decode, wanted), "basis");
}

/** By name and path, those of them that are set. Not by its basis, which a request needs: Vagrant never looks at it. */
export function findProject(rows: Rows, wanted: Project): Uint8Array {
  return found(byNameAndPath(rows, Project.decode, wanted), "project");
}

/**
 * By the first of these that is given: resource_id, project and name, part of the uuid. A name alone is refused, as it
 * says nothing without its project.
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
 * By resource_id; else of the boxes of that name (and provider, where one is given) the one of that version, or the
 * newest that fits a condition ("< 2"; without one any above 0). Undefined: there is none, which is no error here.
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

type Place = { readonly name: string; readonly path: string };

function byNameAndPath(rows: Rows, decode: (bytes: Uint8Array) => Place, { name, path }: Place) {
  if (name === "" && path === "") return undefined;
  return rows.find(({ bytes }) => {
    const place = decode(bytes);
    return (name === "" || place.name === name) && (path === "" || place.path === path);
  });
}

function found(row: Rows[number] | undefined, kind: string): Uint8Array {
  if (row === undefined) throw recordNotFound(kind);
  return row.bytes;
}
