import type { Difference } from "@tapedeck/client";

export type ChangedFile = { readonly path: string; readonly change: string };

/** The files that git reports, then those that only Skaffold names, whose paths may begin in a folder of the repository. */
export function allChangedFiles(differences: readonly Difference[], output: string): readonly ChangedFile[] {
  const ofGit = differences.flatMap(({ kind, subject, left }): ChangedFile[] =>
    kind === "file" ? [{ path: subject, change: left ?? "" }] : [],
  );
  const isListed = ({ path }: ChangedFile) =>
    ofGit.some((file) => file.path === path || file.path.endsWith(`/${path}`));
  return [...ofGit, ...changedFiles(output).filter((file) => !isListed(file))];
}

/** The files that Skaffold's output names as changed, with `-v info`: "files modified: [api/app.txt web/app.txt]". */
export function changedFiles(output: string): readonly ChangedFile[] {
  const found = new Map<string, ChangedFile>();
  for (const [, change = "", names = ""] of output.matchAll(/\bfiles (added|modified|deleted): \[([^\]\n]*)\]/g)) {
    for (const path of names.split(" ").filter((name) => name !== "")) {
      // The last change to a file counts, and its place is that of the first.
      found.set(path, { path, change });
    }
  }
  return [...found.values()];
}
