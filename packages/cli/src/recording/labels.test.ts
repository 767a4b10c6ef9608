import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ciLabels, remoteAddress, sessionLabels } from "./labels.ts";
import { projectName } from "./project-name.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-labels-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, "my-app-"));

describe("labels", () => {
  it("show branch, commit and whether there are changes", async () => {
    const repository = folder();
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
        cwd: repository,
        encoding: "utf8",
      });
    git("init", "-q", "-b", "feature/cart");
    writeFileSync(join(repository, "a"), "1");
    git("add", "a");
    git("commit", "-qm", "One");
    const commit = git("rev-parse", "HEAD").trim();
    const labels = { host: hostname(), branch: "feature/cart", commit, dirty: "false" };
    expect(await sessionLabels(repository, {})).toMatchObject(labels);
    writeFileSync(join(repository, "a"), "2");
    expect(await sessionLabels(repository, {})).toMatchObject({ ...labels, dirty: "true" });
    git("remote", "add", "origin", "git@github.com:acme/shop.git");
    expect(await sessionLabels(repository, {})).toMatchObject({ remote: "https://github.com/acme/shop" });
    git("checkout", "-q", "--detach");
    expect(await sessionLabels(repository, {})).not.toHaveProperty("branch");
  });

  it("have the span in which the command runs, if the environment has a valid one", async () => {
    const span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    expect(await sessionLabels(folder(), { TRACEPARENT: span })).toMatchObject({ traceparent: span });
    const later = await sessionLabels(folder(), { TRACEPARENT: `cc${span.slice(2)}-token` });
    expect(later).toMatchObject({ traceparent: `cc${span.slice(2)}` });
    for (const wrong of ["", "secret", `${span}-more`, span.toUpperCase()]) {
      expect(await sessionLabels(folder(), { TRACEPARENT: wrong })).not.toHaveProperty("traceparent");
    }
  });

  it.each([
    ["https://github.com/acme/shop.git", "https://github.com/acme/shop"],
    ["https://alice:secret@github.com/acme/shop", "https://github.com/acme/shop"],
    ["git@github.com:acme/shop.git", "https://github.com/acme/shop"],
    ["ssh://git@gitlab.acme.dev:2222/team/sub/shop.git", "https://gitlab.acme.dev/team/sub/shop"],
    ["/srv/git/shop.git", undefined],
    ["../shop", undefined],
    ["file:///srv/git/shop.git", undefined],
    ["", undefined],
  ])("name the remote %s as people see it, without a password", (remote, address) => {
    expect(remoteAddress(remote)).toBe(address);
  });

  it("outside of a repository show user and host", async () => {
    expect(Object.keys(await sessionLabels(folder(), {})).sort()).toEqual(["host", "user"]);
  });

  it.each([
    [
      { GITHUB_ACTIONS: "true", GITHUB_RUN_ID: "7", GITHUB_JOB: "e2e", GITHUB_REF_NAME: "main", GITHUB_SHA: "abc" },
      { ci: "github", ci_run: "7", ci_job: "e2e", branch: "main", commit: "abc" },
    ],
    [
      { GITHUB_ACTIONS: "true", GITHUB_HEAD_REF: "fix", GITHUB_REF_NAME: "12/merge" },
      { ci: "github", branch: "fix" },
    ],
    [
      { GITLAB_CI: "true", CI_JOB_ID: "9", CI_PIPELINE_ID: "3" },
      { ci: "gitlab", ci_job: "9", ci_run: "3" },
    ],
    [
      { JENKINS_URL: "http://j/", BUILD_NUMBER: "4", JOB_NAME: "shop" },
      { ci: "jenkins", ci_run: "4", ci_job: "shop" },
    ],
    [{}, {}],
  ])("of %o are %o", (env, labels) => {
    expect(ciLabels(env)).toEqual(labels);
  });
});

describe("a project's name", () => {
  it("is what skaffold.yaml says, where it says one", () => {
    const cwd = folder();
    expect(projectName(cwd, undefined)).toMatch(/^my-app-/);
    writeFileSync(join(cwd, "skaffold.yaml"), "apiVersion: skaffold/v4\n---\nmetadata: {name: shop}\n");
    expect(projectName(cwd, undefined)).toBe("shop");
    writeFileSync(join(cwd, "other.yaml"), "metadata:\n  name: other\n");
    expect(projectName(cwd, "other.yaml")).toBe("other");
  });

  it("is the folder's where skaffold.yaml has none, is damaged, or is no file", () => {
    const cwd = folder();
    for (const text of ["apiVersion: skaffold/v4\n", "metadata: [\n", "", "metadata: {name: 7}"]) {
      writeFileSync(join(cwd, "skaffold.yaml"), text);
      expect(projectName(cwd, undefined)).toMatch(/^my-app-/);
    }
    expect(projectName(cwd, "-")).toMatch(/^my-app-/);
    expect(projectName(cwd, "https://example.com/skaffold.yaml")).toMatch(/^my-app-/);
  });
});
