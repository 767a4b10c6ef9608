import { readFile } from "node:fs/promises";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

/** What is read here of a written bill of materials. */
export type WrittenBom = {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly version: number;
  readonly metadata: { readonly component: WrittenComponent };
  readonly components: readonly WrittenComponent[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};

type WrittenComponent = {
  readonly "bom-ref": string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly externalReferences?: readonly { readonly url: string }[];
};

export async function readBom(file: string): Promise<WrittenBom> {
  return JSON.parse(await readFile(file, "utf8"));
}

/** `name@version` of each component. npm's `name` of one may be that under which a package asks for it. */
export function componentsOf({ components }: WrittenBom): readonly string[] {
  return components.map((one) => one["bom-ref"]);
}

/** What the schema of CycloneDX 1.5 says against a bill, and what it does not ask for, one sentence each. */
export async function complaintsOf(bom: WrittenBom): Promise<readonly string[]> {
  const bySchema = await new Validation.JsonStrictValidator(Spec.Version.v1dot5).validate(JSON.stringify(bom));
  const all = [bom.metadata.component, ...bom.components];
  const refs = all.map((one) => one["bom-ref"]);
  const known = new Set(refs);
  const used = bom.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]);
  return [
    ...(bySchema === null ? [] : [JSON.stringify(bySchema)]),
    ...(bom.specVersion === "1.5" ? [] : [`specVersion is ${bom.specVersion}`]),
    ...all.flatMap((one) => complaintsOfComponent(one)),
    ...(known.size === refs.length ? [] : ["two components have one bom-ref"]),
    ...used.filter((ref) => !known.has(ref)).map((ref) => `dependencies name ${ref}, which is no component`),
  ];
}

function complaintsOfComponent(component: WrittenComponent): readonly string[] {
  const { "bom-ref": ref, name, version, purl, externalReferences = [] } = component;
  return [
    ...externalReferences.filter(({ url }) => url.startsWith("file:")).map(({ url }) => `${ref} is at ${url}`),
    ...(ref && name && version ? [] : [`${ref ?? name} has no bom-ref, name or version`]),
    ...(/^pkg:(npm|generic)\/[^@\s]+@[^@\s]+$/.test(purl) ? [] : [`${ref} has the purl ${purl}`]),
  ];
}
