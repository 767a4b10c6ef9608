import { readFile } from "node:fs/promises";

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

/** What a reader of CycloneDX 1.5 would say against a bill, one sentence each. */
export function complaintsOf(bom: WrittenBom): readonly string[] {
  const all = [bom.metadata.component, ...bom.components];
  const refs = all.map((one) => one["bom-ref"]);
  const known = new Set(refs);
  const used = bom.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]);
  return [
    ...(bom.bomFormat === "CycloneDX" ? [] : [`bomFormat is ${bom.bomFormat}`]),
    ...(bom.specVersion === "1.5" ? [] : [`specVersion is ${bom.specVersion}`]),
    ...(Number.isInteger(bom.version) && bom.version > 0 ? [] : [`version is ${bom.version}`]),
    ...(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(bom.serialNumber) ? [] : ["no serialNumber"]),
    ...all.flatMap((one) => complaintsOfComponent(one)),
    ...(known.size === refs.length ? [] : ["two components have one bom-ref"]),
    ...used.filter((ref) => !known.has(ref)).map((ref) => `dependencies name ${ref}, which is no component`),
  ];
}

function complaintsOfComponent(component: WrittenComponent): readonly string[] {
  const { "bom-ref": ref, type, name, version, purl, externalReferences = [] } = component;
  return [
    ...externalReferences.filter(({ url }) => url.startsWith("file:")).map(({ url }) => `${ref} is at ${url}`),
    ...(["application", "library", "platform"].includes(type) ? [] : [`${ref} is of type ${type}`]),
    ...(ref && name && version ? [] : [`${ref ?? name} has no bom-ref, name or version`]),
    ...(/^pkg:(npm|generic)\/[^@\s]+@[^@\s]+$/.test(purl) ? [] : [`${ref} has the purl ${purl}`]),
  ];
}
