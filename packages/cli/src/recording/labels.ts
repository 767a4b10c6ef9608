import { hostname } from "node:os";
import { ownValue } from "@tapedeck/shared/own-value";
import { loginName } from "@tapedeck/shared/service/login-name";
import {
  parseTraceParent,
  traceParentLabel,
  traceParentLength,
  traceParentVariable,
} from "@tapedeck/shared/traceparent";
import { git } from "./git.ts";

export type Labels = Readonly<Record<string, string>>;

/** Where CI systems say which run and job this is: a variable that names the system, then label → variables. */
const ciSystems: readonly { name: string; sign: string; labels: Readonly<Record<string, readonly string[]>> }[] = [
  {
    name: "github",
    sign: "GITHUB_ACTIONS",
    labels: {
      ci_run: ["GITHUB_RUN_ID"],
      ci_job: ["GITHUB_JOB"],
      ci_attempt: ["GITHUB_RUN_ATTEMPT"],
      branch: ["GITHUB_HEAD_REF", "GITHUB_REF_NAME"],
      commit: ["GITHUB_SHA"],
    },
  },
  {
    name: "gitlab",
    sign: "GITLAB_CI",
    labels: {
      ci_run: ["CI_PIPELINE_ID"],
      ci_job: ["CI_JOB_ID"],
      branch: ["CI_COMMIT_REF_NAME"],
      commit: ["CI_COMMIT_SHA"],
    },
  },
  {
    name: "jenkins",
    sign: "JENKINS_URL",
    labels: {
      ci_run: ["BUILD_NUMBER"],
      ci_job: ["JOB_NAME"],
      branch: ["CHANGE_BRANCH", "BRANCH_NAME"],
      commit: ["GIT_COMMIT"],
    },
  },
  {
    name: "circleci",
    sign: "CIRCLECI",
    labels: {
      ci_run: ["CIRCLE_BUILD_NUM"],
      ci_job: ["CIRCLE_JOB"],
      branch: ["CIRCLE_BRANCH"],
      commit: ["CIRCLE_SHA1"],
    },
  },
  {
    name: "buildkite",
    sign: "BUILDKITE",
    labels: {
      ci_run: ["BUILDKITE_BUILD_ID"],
      ci_job: ["BUILDKITE_JOB_ID"],
      branch: ["BUILDKITE_BRANCH"],
      commit: ["BUILDKITE_COMMIT"],
    },
  },
  {
    name: "azure",
    sign: "TF_BUILD",
    labels: {
      ci_run: ["BUILD_BUILDID"],
      ci_job: ["SYSTEM_JOBID"],
      branch: ["BUILD_SOURCEBRANCHNAME"],
      commit: ["BUILD_SOURCEVERSION"],
    },
  },
  {
    name: "bitbucket",
    sign: "BITBUCKET_BUILD_NUMBER",
    labels: {
      ci_run: ["BITBUCKET_BUILD_NUMBER"],
      ci_job: ["BITBUCKET_STEP_UUID"],
      branch: ["BITBUCKET_BRANCH"],
      commit: ["BITBUCKET_COMMIT"],
    },
  },
  {
    name: "teamcity",
    sign: "TEAMCITY_VERSION",
    labels: { ci_run: ["BUILD_NUMBER"], ci_job: ["TEAMCITY_BUILDCONF_NAME"], commit: ["BUILD_VCS_NUMBER"] },
  },
];

/**
 * The labels by which sessions are grouped: user and host, the state of the code, the CI job. CI knows the branch
 * better.
 */
export async function sessionLabels(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Labels> {
  return { host: hostname(), user: loginName(), ...(await gitLabels(folder)), ...ciLabels(env), ...traceLabels(env) };
}

/** The span in which the command runs, if what started it says so. */
function traceLabels(env: Readonly<Record<string, string | undefined>>): Labels {
  const written = ownValue(env, traceParentVariable);
  return written === undefined || parseTraceParent(written) === undefined
    ? {}
    : { [traceParentLabel]: written.slice(0, traceParentLength) };
}

export function ciLabels(env: Readonly<Record<string, string | undefined>>): Labels {
  const system = ciSystems.find(({ sign }) => (ownValue(env, sign) ?? "") !== "");
  if (system === undefined) return {};
  const found = Object.entries(system.labels).flatMap(([label, variables]) => {
    const value = variables.map((name) => ownValue(env, name)).find((text) => text !== undefined && text !== "");
    return value === undefined ? [] : [[label, value] as const];
  });
  return { ci: system.name, ...Object.fromEntries(found) };
}

/** The labels that git provides. */
export const gitNames = ["branch", "commit", "dirty"] as const;
export type GitName = (typeof gitNames)[number];

/** `""`: none (no branch is checked out). Undefined: git gave no answer. */
export type GitState = Readonly<Record<GitName, string | undefined>>;

/** Nothing outside of a repository, without git, or in a repository so large that git takes its time. */
async function gitLabels(folder: string): Promise<Labels> {
  const [state, remote] = await Promise.all([gitState(folder), gitText(folder, "remote", "get-url", "origin")]);
  const entries = Object.entries({ ...state, remote: remoteAddress(remote ?? "") });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => Boolean(entry[1])));
}

/**
 * Where people see a repository, of a remote in any of git's forms; without a password or token. Undefined: a remote on
 * this machine.
 */
export function remoteAddress(remote: string): string | undefined {
  const found =
    /^(?:https?|ssh|git):\/\/(?:[^@/]*@)?([\w.-]+)(?::\d+)?\/(.+?)(?:\.git)?\/?$/.exec(remote) ??
    /^(?:[^@/:]+@)?([\w-]+\.[\w.-]+):(?!\/\/)(.+?)(?:\.git)?\/?$/.exec(remote);
  return found === null ? undefined : `https://${found[1]}/${found[2]}`;
}

/** The checkout of a folder now. Waits for no lock and takes none. Never rejects. */
export async function gitState(folder: string): Promise<GitState> {
  const [names, changes] = await Promise.all([
    gitText(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"),
    gitText(folder, "status", "--porcelain", "--untracked-files=no", "--no-renames"),
  ]);
  const [commit, branch] = names?.split("\n") ?? [];
  return {
    branch: branch === "HEAD" ? "" : branch,
    commit,
    dirty: changes === undefined ? undefined : String(changes !== ""),
  };
}

async function gitText(folder: string, ...args: string[]): Promise<string | undefined> {
  return (await git(folder, ...args))?.trim();
}
