import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { parseAllDocuments } from "yaml";

/** `metadata.name` of the skaffold.yaml that the command reads, else the folder's name. */
export function projectName(folder: string, filename: string | undefined): string {
  const files = filename === undefined ? ["skaffold.yaml", "skaffold.yml"] : [filename];
  for (const file of files) {
    const path = resolve(folder, file);
    const text = read(path);
    if (text !== undefined) return nameIn(text) ?? basename(dirname(path));
  }
  return basename(resolve(folder)) || "project";
}

/** Undefined for a file that is not there, and for what is no file: "-", a URL. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Several documents may share the file; the first name counts. Skaffold reports errors in it. */
function nameIn(text: string): string | undefined {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return undefined;
  return documents
    .map((document) => document.getIn?.(["metadata", "name"]))
    .find((name): name is string => typeof name === "string" && name !== "");
}
