/** One recorded upstream, "workspace/developer/project/upstream", each part 1–64 of `a-z 0-9 _ -`. */
export type SourceName = string & { readonly __brand: "SourceName" };

/** The parts of a source's name. */
export type SourceParts = {
  readonly workspace: string;
  readonly developer: string;
  readonly project: string;
  readonly upstream: string;
};

/** The workspace of the demo, which takes no recordings from outside. */
export const demoWorkspace = "demo";

const part = /^[a-z0-9_-]{1,64}$/;

/** Makes a name part of anything that people type: lower case, odd characters become "-", at most 64. */
export function namePart(text: string): string {
  const fit = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .slice(0, 64);
  return fit === "" ? "-" : fit;
}

/** Whether it can be part of a name as it is. */
export function isNamePart(text: string): boolean {
  return part.test(text);
}

/** Joins the parts: "workspace/developer/project/upstream". */
export function sourceName(parts: SourceParts): SourceName {
  const { workspace, developer, project, upstream } = parts;
  for (const [name, value] of Object.entries({ workspace, developer, project, upstream })) {
    if (!part.test(value)) throw new RangeError(`${name} ${JSON.stringify(value)} is not 1–64 of a-z 0-9 _ -`);
  }
  return `${workspace}/${developer}/${project}/${upstream}` as SourceName;
}

/** Undefined when the text is not a full source name. */
export function parseSourceName(text: string): SourceName | undefined {
  const parts = text.split("/");
  return parts.length === 4 && parts.every((p) => part.test(p)) ? (text as SourceName) : undefined;
}

/** Splits a source's name into its parts. */
export function sourceParts(source: SourceName): SourceParts {
  const [workspace = "", developer = "", project = "", upstream = ""] = source.split("/");
  return { workspace, developer, project, upstream };
}
