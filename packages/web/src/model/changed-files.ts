export type ChangedFile = { readonly path: string; readonly change: "added" | "modified" | "deleted" };

/** The files that Skaffold's output names as changed, with `-v info`: "files modified: [api/app.txt web/app.txt]". */
export function changedFiles(output: string): readonly ChangedFile[] {
  const found = new Map<string, ChangedFile>();
  for (const [, change, names = ""] of output.matchAll(/\bfiles (added|modified|deleted): \[([^\]\n]*)\]/g)) {
    for (const path of names.split(" ").filter((name) => name !== "")) {
      // The last change to a file counts, and its place is that of the first.
      found.set(path, { path, change: change as ChangedFile["change"] });
    }
  }
  return [...found.values()];
}
