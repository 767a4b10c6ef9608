import { describe, expect, it } from "vitest";
import type { DifferenceKind } from "../schemas/comparison.ts";
import { differencesOf } from "./differences.ts";
import type { SideSummary, SummaryStep } from "./side-summary.ts";
import { at, broken, failed, named, step } from "./testing/planted-sides.ts";

// Causes that the ranking was not written for. `planted` was written by somebody who had not read it: 14 of 20 were first on
// the first run. Then it was mended, each time in general: of `plantedLater` 8 of 10 were first, of `plantedLast` all 10. Their
// author knew the ranking. A cause that is not first is a reason to mend the ranking, never for that one alone.

const build = (artifact: string, durationMs: number) => step("build", artifact, { durationMs, usualMs: durationMs });

/** A project of four artifacts, with a database of its own. */
const bob: SideSummary = {
  name: "bob/store",
  session: "B",
  runner: 1,
  loop: 12,
  outcome: "succeeded",
  position: "383600-t3k9x2",
  gaps: 0,
  version: at("v2.14.2"),
  command: at("dev -p local --port-forward"),
  labels: named({
    branch: "main",
    commit: "4f2c1e0a",
    host: "bobs-laptop",
    user: "bob",
    os: "linux",
    team: "checkout",
    vpn: "on",
  }),
  settings: named({
    "build.type": "LOCAL",
    "build.automatic": "true",
    "deploy.automatic": "true",
    "sync.automatic": "true",
    "build.web.type": "DOCKER",
    "build.web.context": "web",
    "build.web.dockerfile": "Dockerfile",
    "build.api.type": "DOCKER",
    "build.api.context": "api",
    "build.api.dockerfile": "Dockerfile",
    "build.worker.type": "BUILDPACKS",
    "build.worker.context": "worker",
    "build.migrations.type": "DOCKER",
    "build.migrations.context": "db",
    "build.migrations.dockerfile": "Dockerfile",
    "deploy.kubectl": "1",
    "deploy.cluster": "MINIKUBE",
  }),
  artifacts: named({ web: "web", api: "api", worker: "worker", migrations: "migrations" }),
  resources: named({
    "deployment/web": "ready",
    "deployment/api": "ready",
    "deployment/worker": "ready",
    "statefulset/db": "ready",
    "job/migrate": "ready",
  }),
  ports: named({
    "service/web:80": "localhost:8080",
    "service/api:8080": "localhost:9080",
    "service/db:5432": "localhost:5432",
  }),
  debuggers: new Map(),
  steps: [
    ...[build("web", 9_400), build("api", 12_100), build("worker", 31_000), build("migrations", 4_200)],
    step("test", "", { durationMs: 3_300, usualMs: 3_300 }),
    step("render", "", { durationMs: 400, usualMs: 400 }),
    step("deploy", "", { durationMs: 2_600, usualMs: 2_600 }),
    step("check", "", { durationMs: 14_000, usualMs: 14_000 }),
  ],
  failure: undefined,
};

/** Durations vary by up to 20 %, as they do. */
const varied = (steps: readonly SummaryStep[]): readonly SummaryStep[] =>
  steps.map((one, index) => ({
    ...one,
    durationMs: Math.round((one.durationMs ?? 0) * ([0.83, 1.17, 1.04, 0.91, 1.2][index % 5] ?? 1)),
  }));

/** A colleague, whose machine and branch have nothing to do with it. */
const alice: SideSummary = {
  ...bob,
  name: "alice/store",
  session: "A",
  loop: 3,
  labels: named({
    branch: "fix/cart",
    commit: "0be86f77",
    dirty: "true",
    host: "alices-box",
    user: "alice",
    os: "linux",
    team: "checkout",
    vpn: "on",
  }),
  steps: varied(bob.steps),
};

/** The next loops of the same process. */
const later: SideSummary = { ...bob, name: "loop 13", loop: 13, steps: varied(bob.steps) };

/** The same developer on the next day. */
const nextDay = (labels: Readonly<Record<string, string>>): SideSummary => ({
  ...later,
  session: "C",
  loop: 1,
  labels: new Map([...bob.labels, ...named(labels)]),
});

const without = (values: SideSummary["settings"], ...names: readonly string[]) =>
  new Map([...values].filter(([name]) => !names.includes(name)));
const withValues = (values: SideSummary["settings"], more: Readonly<Record<string, string>>) =>
  new Map([...values, ...named(more)]);
const onPlatform =
  (platform: string) =>
  (one: SummaryStep): SummaryStep =>
    one.kind === "build" ? { ...one, platform } : one;

const dana: SideSummary = {
  name: "dana/store",
  session: "D",
  runner: 0,
  loop: 0,
  outcome: "succeeded",
  position: "383600-t3k9x2",
  gaps: 0,
  version: at("2.3.7"),
  command: at("up"),
  labels: named({ branch: "main", commit: "4f2c1e0a", host: "danas-laptop", user: "dana" }),
  settings: named({ "box.debian/12.libvirt": "12.20240905.1", "box.ubuntu/jammy64.libvirt": "20241002.0.0" }),
  artifacts: undefined,
  ports: new Map(),
  debuggers: new Map(),
  resources: named({ web1: "created", web2: "created", db: "created" }),
  steps: [step("command", "up", { durationMs: 81_000, usualMs: 78_000 })],
  failure: undefined,
};
const erin: SideSummary = {
  ...dana,
  name: "erin/store",
  session: "E",
  steps: varied(dana.steps),
  labels: named({ branch: "spike/tls", commit: "77aa01cd", host: "erins-tower", user: "erin" }),
};

const node1: SideSummary = {
  name: "node-1/host",
  session: "N1",
  runner: 0,
  loop: 0,
  outcome: "unknown",
  position: "383600-t3k9x2",
  gaps: 0,
  version: at("1.30.0"),
  command: at(""),
  artifacts: undefined,
  ports: new Map(),
  debuggers: new Map(),
  labels: named({ host: "node-1", rack: "a" }),
  settings: named({
    "host.rkt_version": "1.30.0",
    "host.appc_version": "0.8.11",
    "host.api_version": "1.0.0-alpha",
    "image.example.com/worker": "1.2.0",
    "image.example.com/batch": "0.0.7",
    "image.coreos.com/rkt/stage1-coreos": "1.30.0",
  }),
  resources: named({ worker: "running", batch: "exited 0", sidecar: "running" }),
  steps: ["worker", "batch", "sidecar"].map((app) => step("app", `1c2e5f0e-7b1d-4c36-9d0a-5e8f5a4f6b11/${app}`)),
  failure: undefined,
};
/** Pods have other ids on another host. */
const otherPod = "f54a97f4-3a61-4d09-b553-4e3f676eee89";
const node2: SideSummary = {
  ...node1,
  name: "node-2/host",
  session: "N2",
  labels: named({ host: "node-2", rack: "b" }),
  steps: ["worker", "batch", "sidecar"].map((app) => step("app", `${otherPod}/${app}`)),
};

type Planted = {
  readonly cause: string;
  readonly left: SideSummary;
  readonly right: SideSummary;
  readonly first: readonly [DifferenceKind, subject: string];
};

const planted: readonly Planted[] = [
  {
    cause: "a Skaffold that is older than the configuration",
    left: broken(alice, failed("render", 'parsing skaffold config: unknown api version: "skaffold/v4beta12"'), {
      version: at("v2.3.0"),
    }),
    right: bob,
    first: ["version", "version"],
  },
  {
    cause: "another commit on the same branch, and a build that says nothing",
    left: broken(nextDay({ commit: "9b1de0c4" }), failed("build", "exit status 2", { subject: "api" })),
    right: bob,
    first: ["label", "commit"],
  },
  {
    cause: "a base image that is not there for this laptop's processor",
    left: broken(
      { ...alice, steps: alice.steps.map(onPlatform("linux/arm64")) },
      failed("build", "docker build: exit status 1", {
        subject: "api",
        log: [
          at(
            "ERROR: failed to solve: registry.corp.example/base/java:17: no match for platform in manifest: not found",
          ),
        ],
      }),
    ),
    right: bob,
    first: ["platform", "web, api"],
  },
  {
    cause: "a base image whose name is misspelt",
    left: broken(
      alice,
      failed("build", "docker build: exit status 1", {
        subject: "web",
        log: [
          at(
            "ERROR: failed to solve: node:22-alpin: failed to resolve source metadata for docker.io/library/node:22-alpin: not found",
          ),
        ],
      }),
    ),
    right: bob,
    first: ["failure", "build web"],
  },
  {
    cause: "a test that fails",
    left: broken(
      alice,
      failed("test", "running custom test: exit status 1", {
        log: [at("FAIL src/cart.test.ts > adds two items: AssertionError: expected 2 to be 3")],
      }),
      { resources: new Map() },
    ),
    right: bob,
    first: ["failure", "test"],
  },
  {
    cause: "an image that may not be pulled",
    left: broken(alice, failed("check", "1/5 resource(s) failed", { code: "STATUSCHECK_IMAGE_PULL_ERR" }), {
      resources: withValues(bob.resources, {
        "deployment/worker":
          "failed: container worker is waiting to start: registry.corp.example/worker:0be86f77 can't be pulled: 401 Unauthorized",
      }),
    }),
    right: bob,
    first: ["resource", "deployment/worker"],
  },
  {
    cause: "a container that crashes at its start, since the last edit",
    left: broken(later, failed("check", "1/5 resource(s) failed", { code: "STATUSCHECK_CONTAINER_RESTARTING" }), {
      resources: withValues(bob.resources, {
        "deployment/api": "failed: container api is backing off waiting to restart",
      }),
    }),
    right: bob,
    first: ["resource", "deployment/api"],
  },
  {
    cause: "a cluster without room",
    left: broken(
      alice,
      failed("check", "could not stabilize within 10m0s", { code: "STATUSCHECK_DEADLINE_EXCEEDED" }),
      {
        resources: withValues(bob.resources, {
          "statefulset/db": "in progress: 0/1 nodes are available: 1 Insufficient cpu",
        }),
      },
    ),
    right: bob,
    first: ["resource", "statefulset/db"],
  },
  {
    cause: "a local port that a database of the machine has",
    left: { ...alice, ports: withValues(bob.ports, { "service/db:5432": "localhost:5433" }) },
    right: bob,
    first: ["port", "service/db:5432"],
  },
  {
    cause: "a network that lacks the company's names",
    left: broken(
      { ...alice, labels: withValues(alice.labels, { vpn: "off" }) },
      failed("build", "pack build: exit status 1", {
        subject: "worker",
        log: [at("ERROR: dial tcp: lookup artifacts.corp.example on 192.168.1.1:53: no such host")],
      }),
    ),
    right: bob,
    first: ["label", "vpn"],
  },
  {
    cause: "a profile that was forgotten",
    left: broken(
      { ...alice, command: at("dev --port-forward") },
      failed("deploy", "kubectl apply: exit status 1", {
        log: [at('error: Deployment.apps "api" is invalid: spec.template.spec.containers[0].image: Required value')],
      }),
    ),
    right: bob,
    first: ["command", "command"],
  },
  {
    cause: "an artifact that the branch does not have yet",
    left: broken(
      {
        ...alice,
        artifacts: without(bob.artifacts ?? new Map(), "migrations"),
        settings: without(
          bob.settings,
          ...["build.migrations.type", "build.migrations.context", "build.migrations.dockerfile"],
        ),
        steps: alice.steps.filter(({ subject }) => subject !== "migrations"),
      },
      failed("check", "1/5 resource(s) failed"),
      {
        resources: withValues(bob.resources, {
          "job/migrate": "failed: container migrate is waiting: ErrImageNeverPull",
        }),
      },
    ),
    right: bob,
    first: ["artifact", "migrations"],
  },
  {
    cause: "a check that takes longer than ever",
    left: {
      ...later,
      steps: later.steps.map((one) => (one.kind === "check" ? { ...one, durationMs: 241_000 } : one)),
    },
    right: bob,
    first: ["duration", "check"],
  },
  {
    cause: "a box of last year",
    left: broken(
      { ...erin, settings: withValues(dana.settings, { "box.debian/12.libvirt": "12.20230602.1" }) },
      failed("command", "The SSH command responded with a non-zero exit status.", { subject: "up", code: "2" }),
    ),
    right: dana,
    first: ["configuration", "box.debian/12.libvirt"],
  },
  {
    cause: "a provider that the machine lacks",
    left: broken(
      { ...erin, command: at("up --provider=virtualbox"), resources: new Map() },
      failed("command", "No usable default provider could be found for your system.", { subject: "up", code: "1" }),
    ),
    right: dana,
    first: ["command", "command"],
  },
  {
    cause: "a plugin that is not installed",
    left: broken(
      erin,
      failed("command", "There are errors in the configuration: Unknown configuration section 'hostmanager'.", {
        subject: "up",
        code: "1",
      }),
    ),
    right: dana,
    first: ["failure", "command up"],
  },
  {
    cause: "an app that ends with a code on one host",
    left: broken(node2, failed("app", "", { subject: `${otherPod}/batch`, code: "" }), {
      resources: withValues(node1.resources, { batch: "exited 7" }),
    }),
    right: node1,
    first: ["resource", "batch"],
  },
  {
    cause: "an app of an older image on one host",
    left: broken(node2, failed("app", "", { subject: `${otherPod}/worker`, code: "" }), {
      resources: withValues(node1.resources, { worker: "exited 1" }),
      settings: withValues(node1.settings, { "image.example.com/worker": "1.1.9" }),
    }),
    right: node1,
    first: ["configuration", "image.example.com/worker"],
  },
  {
    cause: "a build context that was moved",
    left: broken(
      { ...alice, settings: withValues(bob.settings, { "build.web.context": ".", "build.worker.type": "DOCKER" }) },
      failed("build", "docker build: exit status 1", {
        subject: "web",
        log: [at('ERROR: failed to solve: failed to compute cache key: "/package.json": not found')],
      }),
    ),
    right: bob,
    first: ["configuration", "build.web.context"],
  },
  {
    cause: "Helm instead of kubectl",
    left: broken(
      { ...alice, settings: withValues(without(bob.settings, "deploy.kubectl"), { "deploy.helm": "1" }) },
      failed("deploy", "install: exit status 1", {
        log: [at("Error: INSTALLATION FAILED: cannot re-use a name that is still in use by a helm release")],
      }),
    ),
    right: bob,
    first: ["configuration", "deploy.helm"],
  },
];

/** Written when the ranking had been mended for those above. */
const plantedLater: readonly Planted[] = [
  {
    cause: "a registry that refuses another login",
    left: broken(
      { ...alice, command: at("dev -p local --port-forward --default-repo=registry.corp.example/alice") },
      failed("build", "docker push: exit status 1", {
        subject: "web",
        log: [at("denied: requested access to the resource is denied: registry.corp.example/alice/web")],
      }),
    ),
    right: bob,
    first: ["command", "command"],
  },
  {
    cause: "a disk that is full",
    left: broken(
      alice,
      failed("build", "docker build: exit status 1", {
        subject: "worker",
        log: [at("ERROR: failed to copy files: write /var/lib/docker/tmp/layer: no space left on device")],
      }),
    ),
    right: bob,
    first: ["failure", "build worker"],
  },
  {
    cause: "a manifest that the edit broke",
    left: broken(
      later,
      failed("deploy", "kubectl apply: exit status 1", {
        log: [at('error: error validating "STDIN": unknown field "spec.template.spec.container"')],
      }),
    ),
    right: bob,
    first: ["failure", "deploy"],
  },
  {
    cause: "another namespace, whose quota is used up",
    left: broken(
      { ...alice, command: at("dev -p local --port-forward -n alice") },
      failed("deploy", "kubectl apply: exit status 1", {
        log: [at('Error from server (Forbidden): pods "web" is forbidden: exceeded quota: compute in namespace alice')],
      }),
    ),
    right: bob,
    first: ["command", "command"],
  },
  {
    cause: "a memory limit",
    left: broken(later, failed("check", "1/5 resource(s) failed"), {
      resources: withValues(bob.resources, {
        "deployment/worker": "failed: container worker terminated with exit code 137",
      }),
    }),
    right: bob,
    first: ["resource", "deployment/worker"],
  },
  {
    cause: "sync that the colleague has switched off",
    left: { ...alice, settings: withValues(bob.settings, { "sync.automatic": "false" }) },
    right: bob,
    first: ["configuration", "sync.automatic"],
  },
  {
    cause: "an emulated processor, which builds ten times slower",
    left: {
      ...alice,
      steps: alice.steps
        .map(onPlatform("linux/arm64"))
        .map((one) => (one.subject === "worker" ? { ...one, durationMs: 310_000 } : one)),
    },
    right: bob,
    first: ["platform", "web, api, worker, migrations"],
  },
  {
    cause: "a cloud builder for one of two",
    left: broken(
      { ...alice, settings: withValues(bob.settings, { "build.type": "GCB" }) },
      failed("build", "googleapi: Error 403: The caller does not have permission", { subject: "web" }),
    ),
    right: bob,
    first: ["configuration", "build.type"],
  },
  {
    cause: "an older Vagrant",
    left: broken(
      { ...erin, version: at("2.2.19") },
      failed("command", "The box you are attempting to add requires Vagrant 2.3.0 or newer.", {
        subject: "up",
        code: "1",
      }),
    ),
    right: dana,
    first: ["version", "version"],
  },
  {
    cause: "a tool that the branch needs and the laptop lacks",
    left: broken(
      alice,
      failed("build", "building custom artifact: exit status 127", {
        subject: "api",
        log: [at("./build.sh: line 3: ko: command not found")],
      }),
    ),
    right: bob,
    first: ["failure", "build api"],
  },
];

/** Written after those. */
const plantedLast: readonly Planted[] = [
  {
    cause: "a cluster of another kind, which is not up",
    left: broken(
      {
        ...alice,
        settings: withValues(bob.settings, { "deploy.cluster": "KIND", "build.web.dockerfile": "Dockerfile.dev" }),
      },
      failed("deploy", "Unable to connect to the server: net/http: TLS handshake timeout"),
    ),
    right: bob,
    first: ["configuration", "deploy.cluster"],
  },
  {
    cause: "a dependency that does not resolve",
    left: broken(
      nextDay({ commit: "9b1de0c4", branch: "chore/deps" }),
      failed("build", "docker build: exit status 1", {
        subject: "web",
        log: [at("npm error code ERESOLVE"), at("npm error ERESOLVE unable to resolve dependency tree")],
      }),
    ),
    right: bob,
    first: ["failure", "build web"],
  },
  {
    cause: "a probe that is answered with 503",
    left: broken(alice, failed("check", "1/5 resource(s) failed"), {
      resources: withValues(bob.resources, {
        "deployment/api": "in progress: Readiness probe failed: HTTP probe failed with statuscode: 503",
      }),
    }),
    right: bob,
    first: ["resource", "deployment/api"],
  },
  {
    cause: "a Skaffold that was updated",
    left: broken({ ...alice, version: at("v2.15.0") }, failed("deploy", "exit status 1")),
    right: bob,
    first: ["version", "version"],
  },
  {
    cause: "a Docker that is too old",
    left: broken(
      { ...alice, labels: withValues(alice.labels, { docker: "1.24" }) },
      failed("build", "client version 1.24 is too old. Minimum supported API version is 1.44", { subject: "web" }),
    ),
    right: { ...bob, labels: withValues(bob.labels, { docker: "1.47" }) },
    first: ["label", "docker"],
  },
  {
    cause: "a debugger that does not attach",
    left: alice,
    right: { ...bob, debuggers: named({ "web/app": "nodejs" }) },
    first: ["debugger", "web/app"],
  },
  {
    cause: "a deploy that waits for something",
    left: {
      ...alice,
      steps: alice.steps.map((one) => (one.kind === "deploy" ? { ...one, durationMs: 45_000 } : one)),
    },
    right: bob,
    first: ["duration", "deploy"],
  },
  {
    cause: "a port of the machine that another one forwards",
    left: broken(
      erin,
      failed("command", "Vagrant cannot forward the specified ports on this VM: port 8080 is already in use.", {
        subject: "up",
        code: "1",
      }),
    ),
    right: dana,
    first: ["failure", "command up"],
  },
  {
    cause: "a builder that expects a Dockerfile",
    left: broken(
      { ...alice, settings: withValues(bob.settings, { "build.worker.type": "DOCKER" }) },
      failed("build", "docker build: exit status 1", {
        subject: "worker",
        log: [at("ERROR: failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory")],
      }),
    ),
    right: bob,
    first: ["configuration", "build.worker.type"],
  },
  {
    cause: "another file of configuration",
    left: broken(
      { ...alice, command: at("dev -p local --port-forward -f skaffold.ci.yaml") },
      failed("test", "running custom test: exit status 2"),
      { resources: new Map() },
    ),
    right: bob,
    first: ["command", "command"],
  },
];

describe("a cause that the ranking had never seen is first:", () => {
  it.each([...planted, ...plantedLater, ...plantedLast])("$cause", ({ left, right, first }) => {
    const { differences } = differencesOf(left, right);
    const [found] = differences;
    expect([found?.kind, found?.subject], JSON.stringify(differences, undefined, 1)).toEqual(first);
    expect(found?.text).not.toMatch(/undefined|null/);
  });
});
