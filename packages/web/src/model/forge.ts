type Labels = Readonly<Record<string, string>>;

/** How forges name a branch, a commit, and what lies between two commits. */
const forges: readonly {
  readonly host: RegExp;
  readonly branch: string;
  readonly commit: string;
  readonly between: string;
}[] = [
  { host: /(^|\.)gitlab\./, branch: "/-/tree/", commit: "/-/commit/", between: "/-/compare/" },
  { host: /(^|\.)bitbucket\./, branch: "/branch/", commit: "/commits/", between: "/branches/compare/" },
  { host: /(^|\.)(gitea|forgejo|codeberg)\./, branch: "/src/branch/", commit: "/commit/", between: "/compare/" },
  { host: /(^|\.)github\./, branch: "/tree/", commit: "/commit/", between: "/compare/" },
];

/** Where a label's value is shown at the forge that the label "remote" names. Undefined: nowhere that is known. */
export function forgePath(labels: Labels, name: string): string | undefined {
  const { remote, branch, commit } = labels;
  const repository = repositoryOf(remote);
  if (repository === undefined) return undefined;
  const { url, forge } = repository;
  if (name === "remote") return url;
  if (name === "branch" && branch !== undefined)
    return `${url}${forge.branch}${branch.split("/").map(encodeURIComponent).join("/")}`;
  return name === "commit" && commit !== undefined && isCommit(commit) ? `${url}${forge.commit}${commit}` : undefined;
}

/** The commits from one to another at the forge. */
export function commitsPath(labels: Labels, from: string, to: string): string | undefined {
  const repository = repositoryOf(labels.remote);
  if (repository === undefined || !isCommit(from) || !isCommit(to)) return undefined;
  const { url, forge } = repository;
  return `${url}${forge.between}${forge.host.test("bitbucket.") ? `${to}..${from}` : `${from}...${to}`}`;
}

function isCommit(text: string): boolean {
  return /^[0-9a-f]{7,64}$/.test(text);
}

/** A recorded value is not trusted as an address: it leads to a forge over https, or nowhere. */
function repositoryOf(remote = "") {
  const [, host = "", path = ""] = /^https:\/\/([a-z0-9.-]+)(\/[\w.~/-]+)$/i.exec(remote) ?? [];
  const forge = forges.find((one) => one.host.test(host));
  return forge === undefined ? undefined : { url: `https://${host}${path}`, forge };
}
