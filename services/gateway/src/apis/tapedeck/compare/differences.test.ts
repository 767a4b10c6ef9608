import { describe, expect, it } from "vitest";
import type { DifferenceKind } from "../schemas/comparison.ts";
import { differencesOf } from "./differences.ts";
import type { SideSummary } from "./side-summary.ts";
import { at, broken, failed, named, step } from "./testing/planted-sides.ts";

// A failure with a known cause, planted among differences that have nothing to do with it: the cause comes first.

const good: SideSummary = {
  name: "bob/shop",
  session: "B",
  runner: 1,
  loop: 3,
  outcome: "succeeded",
  position: "383600-t3k9x2",
  gaps: 0,
  version: at("v2.14.2"),
  labels: named({ branch: "main", commit: "4f2c1e0a", host: "bobs-laptop", user: "bob", team: "checkout" }),
  command: at("dev --port-forward"),
  settings: named({
    "build.type": "LOCAL",
    "build.web.type": "DOCKER",
    "build.web.dockerfile": "Dockerfile",
    "build.api.type": "DOCKER",
    "build.api.dockerfile": "Dockerfile",
    "build.automatic": "true",
    "deploy.kubectl": "1",
    "deploy.cluster": "MINIKUBE",
  }),
  artifacts: named({ web: "web", api: "api" }),
  resources: named({ "deployment/web": "ready", "deployment/api": "ready" }),
  ports: named({ "deployment/web:8080": "localhost:9080" }),
  debuggers: new Map(),
  steps: [step("build", "web"), step("build", "api"), step("deploy", ""), step("check", "")],
  failure: undefined,
};

/** The same on another machine: what always differs between two people. */
const other: SideSummary = {
  ...good,
  name: "alice/shop",
  session: "A",
  labels: named({
    branch: "fix/cart",
    commit: "0be86f77",
    dirty: "true",
    host: "alices-box",
    user: "alice",
    team: "checkout",
  }),
};
const laterLoop: SideSummary = { ...good, name: "loop 4", loop: 4 };

type Planted = {
  readonly cause: string;
  readonly left: SideSummary;
  readonly right?: SideSummary;
  readonly first: readonly [DifferenceKind, subject: string];
};

const set = (summary: SideSummary, values: Readonly<Record<string, string>>) =>
  new Map([...summary.settings, ...named(values)]);

const planted: readonly Planted[] = [
  {
    cause: "both fail to deploy, and only the text differs",
    left: broken(other, failed("deploy", 'error validating "STDIN": unknown object type in web.yaml')),
    right: broken(good, failed("deploy", "exit status 1")),
    first: ["failure", "deploy"],
  },
  {
    cause: "the output of a step says what its error does not",
    left: broken(
      laterLoop,
      failed("deploy", "kubectl apply: exit status 1", { log: [at('error: no matches for kind "Deploymint"')] }),
    ),
    first: ["failure", "deploy"],
  },
  {
    cause: "code that does not compile",
    left: broken(
      laterLoop,
      failed("build", "exit status 1", { subject: "web", log: [at("main.go:3:1: syntax error: unexpected }")] }),
    ),
    first: ["failure", "build web"],
  },
  {
    cause: "an older Skaffold that does not know a field",
    left: broken(other, failed("build", "parsing skaffold config: unknown field 'verify'", { subject: "web" }), {
      version: at("v1.39.18"),
    }),
    first: ["version", "version"],
  },
  {
    cause: "an older Skaffold, with a text that says nothing",
    left: broken(other, failed("deploy", "exit status 1"), { version: at("v1.39.18") }),
    first: ["version", "version"],
  },
  {
    cause: "an image for another platform",
    left: broken(other, failed("check", "1/2 deployment(s) failed", { log: [at("exec /web: exec format error")] }), {
      steps: [
        step("build", "web", { platform: "linux/arm64" }),
        step("build", "api", { platform: "linux/arm64" }),
        step("deploy", ""),
        step("check", "", { outcome: "failed" }),
      ],
      resources: named({
        "deployment/web": "failed: container web terminated with exit code 1",
        "deployment/api": "ready",
      }),
    }),
    first: ["platform", "web, api"],
  },
  {
    cause: "a label that says which environment is missing",
    left: broken(other, failed("deploy", "exit status 1"), {
      labels: named({ branch: "fix/cart", commit: "0be86f77", host: "alices-box", user: "alice" }),
    }),
    first: ["label", "team"],
  },
  {
    cause: "another deployer in the configuration",
    left: broken(other, failed("deploy", "exit status 1"), { settings: set(good, { "deploy.kubectl": "2" }) }),
    first: ["configuration", "deploy.kubectl"],
  },
  {
    cause: "another cluster, which does not answer",
    left: broken(other, failed("deploy", "dial tcp 10.0.0.1:443: connection refused"), {
      settings: set(good, { "deploy.cluster": "GKE", "build.web.dockerfile": "Dockerfile.dev" }),
    }),
    first: ["configuration", "deploy.cluster"],
  },
  {
    cause: "a Dockerfile that was renamed for the artifact that fails",
    left: broken(other, failed("build", "exit status 1", { subject: "web" }), {
      settings: set(good, { "build.web.dockerfile": "Dockerfile.prod", "deploy.kubectl": "2" }),
    }),
    first: ["configuration", "build.web.dockerfile"],
  },
  {
    cause: "an artifact that one side does not build",
    left: broken(other, failed("check", "1/2 deployment(s) failed"), {
      artifacts: named({ web: "web" }),
      steps: [step("build", "web"), step("deploy", ""), step("check", "", { outcome: "failed" })],
      resources: named({
        "deployment/web": "ready",
        "deployment/api": "failed: container api is waiting: ImagePullBackOff for api",
      }),
    }),
    first: ["artifact", "api"],
  },
  {
    cause: "a resource that does not become ready",
    left: broken(laterLoop, failed("check", "1/2 deployment(s) failed"), {
      resources: named({ "deployment/web": "ready", "deployment/api": "failed: readiness probe failed" }),
    }),
    first: ["resource", "deployment/api"],
  },
  {
    cause: "an image that cannot be pulled",
    left: broken(other, failed("check", "1/2 deployment(s) failed"), {
      resources: named({ "deployment/web": 'failed: image "web:0be8" can\'t be pulled', "deployment/api": "ready" }),
    }),
    first: ["resource", "deployment/web"],
  },
  {
    cause: "a port that another program has",
    left: { ...other, ports: named({ "deployment/web:8080": "localhost:9081" }) },
    first: ["port", "deployment/web:8080"],
  },
  {
    cause: "a port that another program has, and that fails the loop",
    left: broken(other, failed("deploy", "port forwarding: listen tcp 127.0.0.1:9080: bind: address already in use"), {
      ports: named({ "deployment/web:8080": "localhost:9081" }),
    }),
    first: ["port", "deployment/web:8080"],
  },
  {
    cause: "a build that takes much longer",
    left: { ...other, steps: good.steps.with(0, step("build", "web", { durationMs: 42_000 })) },
    first: ["duration", "build web"],
  },
  {
    cause: "a check that timed out behind a slow deploy",
    left: broken(
      { ...laterLoop, steps: good.steps.with(2, step("deploy", "", { durationMs: 30_000 })) },
      failed("check", "could not stabilize within 20s"),
    ),
    right: good,
    first: ["duration", "deploy"],
  },
  {
    cause: "another command of Skaffold",
    left: broken(other, failed("deploy", "exit status 1"), { command: at("run --port-forward") }),
    first: ["command", "command"],
  },
  {
    cause: "a profile that is not activated",
    left: broken(other, failed("deploy", 'configmaps "settings" not found'), {
      command: at("dev -p staging --port-forward"),
    }),
    first: ["command", "command"],
  },
  {
    cause: "builds that do not start by themselves",
    left: { ...other, settings: set(good, { "build.automatic": "false" }) },
    first: ["configuration", "build.automatic"],
  },
  {
    cause: "a machine without space",
    left: broken(other, failed("build", "write /layer: no space left on device", { subject: "api" }), {
      version: at("v2.14.1"),
    }),
    first: ["failure", "build api"],
  },
  {
    cause: "a runtime that the debugger takes for another",
    left: { ...other, debuggers: named({ "web/app": "python" }) },
    right: { ...good, debuggers: named({ "web/app": "nodejs" }) },
    first: ["debugger", "web/app"],
  },
  {
    cause: "a change of the artifact that fails since",
    left: broken({ ...laterLoop, steps: [step("build", "api")] }, failed("build", "exit status 1", { subject: "api" })),
    right: { ...good, steps: [step("build", "web"), step("deploy", "")] },
    first: ["artifact", "api"],
  },
  {
    cause: "kube context differs, forbidden",
    left: broken(
      { ...other, labels: new Map([...other.labels, ...named({ context: "prod" })]) },
      failed("deploy", 'deployments.apps is forbidden: User "alice" cannot create resource'),
    ),
    right: { ...good, labels: new Map([...good.labels, ...named({ context: "dev" })]) },
    first: ["label", "context"],
  },
  {
    cause: "builder type differs",
    left: broken(other, failed("build", "exit status 2", { subject: "api" }), {
      settings: set(good, { "build.api.type": "BUILDPACKS" }),
    }),
    first: ["configuration", "build.api.type"],
  },
  {
    cause: "default-repo flag",
    left: broken(other, failed("check", "1/2 deployment(s) failed"), {
      command: at("dev --port-forward --default-repo=registry.example"),
      resources: named({
        "deployment/web": 'failed: image "registry.example/web" can\'t be pulled',
        "deployment/api": "ready",
      }),
    }),
    first: ["command", "command"],
  },
  {
    cause: "oom",
    left: broken(other, failed("check", "1/2 deployment(s) failed"), {
      resources: named({ "deployment/web": "failed: container web terminated: OOMKilled", "deployment/api": "ready" }),
    }),
    first: ["resource", "deployment/web"],
  },
  {
    cause: "test failure text",
    left: broken(
      { ...other, steps: [step("build", "web"), step("test", ""), step("deploy", "")] },
      failed("test", "structure test: expected /app/server to exist"),
    ),
    first: ["failure", "test"],
  },
  {
    cause: "extra artifact breaks build",
    left: broken(
      { ...other, artifacts: named({ web: "web", api: "api", cron: "cron" }), steps: [step("build", "cron")] },
      failed("build", "exit status 1", { subject: "cron", log: [at("ERROR: failed to build cron")] }),
    ),
    first: ["artifact", "cron"],
  },
  {
    cause: "go toolchain version label",
    left: broken(
      { ...other, labels: new Map([...other.labels, ...named({ go: "1.19" })]) },
      failed("build", "exit status 1", { subject: "web", log: [at("go.mod:3: invalid go version '1.22.0'")] }),
    ),
    right: { ...good, labels: new Map([...good.labels, ...named({ go: "1.22" })]) },
    first: ["label", "go"],
  },
  { cause: "branch only", left: broken(other, failed("deploy", "exit status 1")), first: ["label", "branch"] },
  {
    cause: "slow build, other arch emulated",
    left: {
      ...other,
      steps: [step("build", "web", { platform: "linux/arm64", durationMs: 90_000 }), ...good.steps.slice(1)],
    },
    first: ["platform", "web"],
  },
  {
    cause: "cluster type, DNS",
    left: broken(other, failed("deploy", "lookup registry.local: no such host"), {
      settings: set(good, { "deploy.cluster": "OTHER" }),
    }),
    first: ["configuration", "deploy.cluster"],
  },
  {
    cause: "gcb vs local build",
    left: broken(other, failed("build", "could not find default credentials", { subject: "web" }), {
      settings: set(good, { "build.type": "GCB" }),
    }),
    first: ["configuration", "build.type"],
  },
  {
    cause: "missing secret for one developer",
    left: broken(
      { ...other, labels: named({ branch: "fix/cart", host: "alices-box" }) },
      failed("check", "1/2 deployment(s) failed"),
      { resources: named({ "deployment/web": 'failed: secret "db" not found', "deployment/api": "ready" }) },
    ),
    first: ["resource", "deployment/web"],
  },
];

describe("the planted cause is first:", () => {
  it.each(planted)("$cause", ({ left, right = good, first }) => {
    const { differences } = differencesOf(left, right);
    const [found] = differences;
    expect([found?.kind, found?.subject], JSON.stringify(differences, undefined, 1)).toEqual(first);
    expect(found?.text).not.toMatch(/undefined|null/);
  });

  it("and is not alone where the sides are of two people", () => {
    const ofTwo = planted.filter(({ left }) => left.session === "A");
    expect(ofTwo.length).toBeGreaterThanOrEqual(14);
    for (const { left, right = good } of ofTwo)
      expect(differencesOf(left, right).differences.length).toBeGreaterThanOrEqual(4);
  });
});

it("equal sides have no differences, and all that was compared counts", () => {
  const { differences, same } = differencesOf(good, good);
  expect(differences).toEqual([]);
  expect(same.length).toBeGreaterThan(20);
  expect(same).toContainEqual({ kind: "version", subject: "version", value: good.version.value });
  expect(same).toContainEqual({ kind: "failure", subject: "failure", value: "none" });
});

it("a setting of an artifact that only v2 reports is no difference where one side's v2 is silent", () => {
  const left = {
    ...good,
    settings: named({ "build.type": "LOCAL", "build.web.context": "web", "render.kubectl": "1" }),
  };
  const right = { ...good, settings: named({ "build.type": "LOCAL", "render.kubectl": "2" }) };
  const subjects = differencesOf(left, right).differences.map(({ subject }) => subject);
  expect(subjects).toEqual(["render.kubectl"]);
  const other = {
    ...right,
    settings: named({ "build.type": "LOCAL", "build.api.context": "api", "render.kubectl": "1" }),
  };
  expect(differencesOf(left, other).differences.map(({ subject }) => subject)).toContain("build.web.context");
});

it("a step after the failed one is no difference: it did not happen", () => {
  const left = broken(laterLoop, failed("build", "exit status 1", { subject: "api" }));
  expect(differencesOf(left, good).differences.map(({ kind }) => kind)).toEqual(["failure"]);
});

it.each([
  ["a loop, which deploys before it prepares what it watches", 1, ["failure", "resource"]],
  ["a runner, which is made before all else", 0, ["failure"]],
] as const)("a step before the failed one is compared: init of %s", (_, loop, kinds) => {
  const resources = named({ "deployment/web": "ready", "deployment/api": "pending" });
  const { differences } = differencesOf(broken({ ...laterLoop, loop, resources }, failed("init", "no")), good);
  const found = differences.map(({ kind }) => kind).filter((kind) => kind !== "port");
  expect(found.toSorted()).toEqual(kinds);
});

it("two failures of one kind are the same, whatever ids and times are in their texts", () => {
  const text = (id: string, ms: string) =>
    failed("check", `pod web-${id} is not ready after ${ms}: back-off restarting`);
  const left = broken(laterLoop, text("7d9f8b6c5d-x2k4p", "20.013s"));
  const right = broken(good, text("6c5d7d9f8b-9qwz7", "20.120s"));
  expect(differencesOf(left, right).differences).toEqual([]);
  const unlike = broken(good, failed("check", "pod web is not ready: OOMKilled"));
  expect(differencesOf(left, unlike).differences[0]?.text).toBe(
    "check failed: pod web-7d9f8b6c5d-x2k4p is not ready after 20.013s: back-off restarting; in bob/shop check failed: pod web is not ready: OOMKilled",
  );
});

it("without anything to compare with, the failure and what is out of line with history remain", () => {
  const left = broken(
    { ...laterLoop, steps: good.steps.with(0, step("build", "web", { durationMs: 9_000 })) },
    failed("deploy", "no"),
  );
  const { differences } = differencesOf(left, undefined);
  expect(differences.map(({ text }) => text)).toEqual(["deploy failed: no", "build web took 9.0 s; usually 1.0 s"]);
});

it("does not take long for a text of any length", () => {
  const text = "no matching ".repeat(50_000);
  const before = process.threadCpuUsage();
  differencesOf(broken(laterLoop, failed("deploy", text)), broken(good, failed("deploy", `${text}!`)));
  // Processor time of this thread: it does not depend on what else the machine does.
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(1_000);
});

describe("changed files", () => {
  const list = (at: number, paths: readonly string[], more = 0) => ({
    at,
    files: paths.map((path) => ({ path, change: "modified" })),
    more,
    position: "383600-t3k9x2",
  });
  const source = "acme/bob/shop/skaffold";
  const right: SideSummary = { ...good, checkout: { source, at: 10, changes: [list(10, ["old.ts"])] } };
  const changes = [list(10, ["old.ts"]), list(20, ["web/a.ts", "src/room.ts"]), list(30, ["src/room.ts"], 7)];
  const left = {
    ...broken(laterLoop, failed("build", "src/room.ts:41: no", { subject: "api" })),
    checkout: { source, at: 30, changes },
  };
  const filesOf = (one: SideSummary, other: SideSummary) =>
    differencesOf(one, other)
      .differences.filter(({ kind }) => kind === "file")
      .map(({ text }) => text);

  it("are those since the loop on the right, the one that the failure names first of all", () => {
    expect(differencesOf(left, right).differences[0]?.subject).toBe("src/room.ts");
    expect(filesOf(left, right)).toEqual([
      "src/room.ts was modified since bob/shop",
      "web/a.ts was modified since bob/shop",
      "other files: 7 or more changed",
    ]);
  });

  it("of an earlier session's loop are all that this session reports, and of another source none", () => {
    const earlier = { ...right, session: "earlier" };
    expect(filesOf(left, earlier)).toContain("old.ts: modified, as git reports");
    const others = { ...earlier, checkout: { source: "acme/alice/shop/skaffold", at: 10, changes: [] } };
    expect(filesOf(left, others)).toEqual([]);
  });
});
