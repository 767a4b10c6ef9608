import type { PlantedCause } from "./planted-cause.ts";
import { type Recording, recording } from "./recording.ts";
import { type Artifact, type SkaffoldSetup, skaffoldProcess } from "./skaffold-process.ts";

// Causes that break dev loops on Kubernetes. Each case names its cause; the other differences are ordinary ones.

const alice = { user: "alice", host: "alice-desktop" };
const bob = { user: "bob", host: "bob-laptop" };
const main = { branch: "main", commit: "5c1d20e8a4f94d6c8c1b1f7b5f3f2f5e0a9d7c11", dirty: "false" };
const later = { branch: "main", commit: "a97be03c41d2478f9d0f5a3e6b1c8d7f42e6a805", dirty: "false" };
const shop: readonly Artifact[] = [{ name: "web" }, { name: "api" }, { name: "worker" }];
const deployed = ["deployment/web", "deployment/api", "deployment/worker"];

type Process = ReturnType<typeof skaffoldProcess>;

/** A first loop that builds everything and succeeds. */
function goodLoop(process: Process, names: readonly string[] = shop.map(({ name }) => name), ms = 8_000): void {
  process.loop();
  for (const [index, name] of names.entries()) process.build(name, { ms: ms + index * 700 });
  process.built();
  process.render();
  process.deploy();
  process.check(names.map((name) => `deployment/${name}`));
  for (const [index, name] of names.entries()) process.port(9_000 + index, name);
  process.succeeded();
}

function sources(project: string, developers: readonly string[]): Recording[] {
  return developers.map((developer) => recording(developer, project, "skaffold"));
}

function side(of: Recording, setup: Partial<SkaffoldSetup> & Pick<SkaffoldSetup, "labels">): Process {
  return skaffoldProcess(of, { artifacts: shop, ...setup });
}

function together(name: string, [left, right]: readonly Recording[], cause: PlantedCause["cause"]): PlantedCause {
  if (left === undefined) throw new Error("no failing side");
  const events = [...(right?.events ?? []), ...left.events];
  return { name, left: left.source, ...(right && { right: right.source }), events, cause };
}

function armLaptop(): PlantedCause {
  const [bobs, alices] = sources("arm-laptop", ["bob", "alice"]) as [Recording, Recording];
  goodLoop(side(alices, { labels: { ...alice, ...main } }));
  const process = side(bobs, {
    labels: { ...bob, branch: "feature/cart", commit: later.commit, dirty: "true" },
    platform: "darwin/arm64",
    targets: "linux/arm64",
  });
  process.loop();
  process.build("worker", { ms: 19_000 });
  process.build("web", {
    log: [
      "#2 [internal] load metadata for registry.acme.dev/base/node:18-slim",
      "#2 ERROR: no match for platform in manifest: not found",
      "ERROR: failed to solve: registry.acme.dev/base/node:18-slim: failed to resolve source metadata for registry.acme.dev/base/node:18-slim: no match for platform in manifest: not found",
    ],
    fails: {
      code: "BUILD_DOCKER_UNKNOWN",
      message:
        "exit status 1. Docker build ran into internal error. Please retry.\nIf this keeps happening, please open an issue..",
    },
  });
  return together("an Apple laptop builds for a platform that the base image does not have", [bobs, alices], {
    kinds: ["platform"],
  });
}

function noDefaultRepo(): PlantedCause {
  const [bobs, alices] = sources("default-repo", ["bob", "alice"]) as [Recording, Recording];
  goodLoop(side(alices, { labels: { ...alice, ...main } }));
  const process = side(bobs, { labels: { ...bob, ...later }, version: "v2.14.1" });
  process.loop();
  process.build("web", {
    ms: 21_000,
    log: [
      "The push refers to repository [docker.io/library/web]",
      "a41c6a2f3b7d: Preparing",
      "denied: requested access to the resource is denied",
    ],
    fails: {
      code: "BUILD_PUSH_ACCESS_DENIED",
      message: 'could not push image "web:a97be03": denied: requested access to the resource is denied',
      suggestions: ["Try running with `--default-repo` flag", "Try `docker login`"],
    },
  });
  return together("a newcomer has no default repository, so the push is denied", [bobs, alices], {
    kinds: ["failure"],
    text: /denied/,
  });
}

function upgradedSkaffold(): PlantedCause {
  const [alices] = sources("upgrade", ["alice"]) as [Recording];
  const deployers = [{ type: "HELM", count: 2 }] as const;
  const before = side(alices, { labels: { ...alice, ...main }, version: "v2.13.2", deployers });
  goodLoop(before);
  before.ended();
  alices.pass(15 * 3_600_000);
  const process = side(alices, { labels: { ...alice, ...later }, version: "v2.16.0", deployers });
  process.loop();
  process.cached("web");
  process.cached("worker");
  process.build("api", { ms: 11_000 });
  process.built();
  process.render();
  process.deploy({
    log: ["Helm release shop-db not installed. Installing...", "Error: unknown flag: --skip-schema-validation"],
    fails: { code: "DEPLOY_HELM_USER_ERR", message: 'deploying "shop-db": install: exit status 1' },
  });
  return together("Skaffold was upgraded over night, and helm was not", [alices], { kinds: ["version"] });
}

function crashAfterEdit(): PlantedCause {
  const [alices] = sources("crash", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  goodLoop(process);
  process.loop({ dirty: "true" });
  process.build("web", { ms: 5_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(deployed);
  process.port(9_000, "web");
  process.succeeded();
  process.loop({ commit: later.commit });
  process.build("api", { ms: 14_000 });
  process.built();
  process.render();
  process.deploy();
  process.appLog("api", [
    "node:internal/modules/cjs/loader:1080",
    "  throw err;",
    "Error: Cannot find module './routes/orders'",
    "Require stack:",
    "- /app/server.js",
  ]);
  process.check(["deployment/web", "deployment/worker"], {
    resource: "deployment/api",
    pending: "waiting for rollout to finish: 0 of 1 updated replicas are available...",
    log: ["      > [api-6c9f7d5b44-x2x9k api] Error: Cannot find module './routes/orders'"],
    fails: {
      code: "STATUSCHECK_CONTAINER_TERMINATED",
      message: "container api terminated with exit code 1",
      suggestions: ["Try checking container logs"],
    },
  });
  return together("the api crashes after an edit", [alices], {
    kinds: ["resource", "failure"],
    text: /deployment\/api|container api|routes\/orders/,
  });
}

function testsOfABranch(): PlantedCause {
  const [alices] = sources("branch-tests", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  process.loop();
  for (const { name } of shop) process.build(name);
  process.built();
  process.tests({ log: ["ok   acme.dev/shop/checkout 0.412s"] });
  process.render();
  process.deploy();
  process.check(deployed);
  process.port(9_000, "web");
  process.succeeded();
  process.loop({ branch: "feature/rounding", commit: later.commit });
  process.build("api", { ms: 9_500 });
  process.built();
  process.tests({
    ms: 9_000,
    log: ["FAIL acme.dev/shop/checkout 0.398s", "FAIL"],
    fails: {
      code: "TEST_CUSTOM_CMD_RUN_NON_ZERO_EXIT_ERR",
      message: "custom test command finished with non-0 exit code: exit status 1",
    },
  });
  return together("the tests fail on another branch", [alices], { kinds: ["label"], subject: /branch|commit/ });
}

function helmLock(): PlantedCause {
  const [alices] = sources("helm-lock", ["alice"]) as [Recording];
  const deployers = [{ type: "HELM", count: 1 }] as const;
  const before = side(alices, { labels: { ...alice, ...main }, deployers });
  goodLoop(before);
  before.ended();
  alices.pass(2 * 3_600_000);
  const process = side(alices, { labels: { ...alice, ...later, dirty: "true" }, deployers });
  process.loop();
  process.cached("api");
  process.build("worker", { ms: 26_000 });
  process.cached("web");
  process.built();
  process.render({ ms: 900 });
  process.deploy({
    log: [
      'Release "shop" does exist. Upgrading...',
      "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
    ],
    fails: { code: "DEPLOY_HELM_USER_ERR", message: 'deploying "shop": install: exit status 1' },
  });
  return together("a helm release is locked by an upgrade that was interrupted", [alices], {
    kinds: ["failure"],
    text: /another operation/,
  });
}

function otherBuilder(): PlantedCause {
  const [alices] = sources("builder", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  goodLoop(process);
  process.reconfigured([{ name: "web" }, { name: "api" }, { name: "worker", type: "BUILDPACKS" }]);
  process.loop({ dirty: "true", commit: later.commit });
  process.cached("web");
  process.cached("api");
  process.build("worker", {
    ms: 33_000,
    log: [
      "===> ANALYZING",
      "===> DETECTING",
      "ERROR: No buildpack groups passed detection.",
      "ERROR: failed to detect: no buildpacks participating",
    ],
    fails: { code: "BUILD_UNKNOWN", message: "executing lifecycle: failed with status code: 20" },
  });
  return together("an artifact is built with buildpacks since skaffold.yaml was edited", [alices], {
    kinds: ["configuration"],
    text: /buildpacks/i,
  });
}

function otherCluster(): PlantedCause {
  const [bobs, alices] = sources("cluster", ["bob", "alice"]) as [Recording, Recording];
  goodLoop(side(alices, { labels: { ...alice, ...main }, cluster: "MINIKUBE" }));
  const process = side(bobs, { labels: { ...bob, ...later }, cluster: "GKE" });
  process.loop();
  for (const name of ["worker", "web", "api"]) process.build(name, { ms: 12_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(["deployment/worker"], {
    resource: "deployment/web",
    log: ['      > Failed to pull image "web:a97be03": pull access denied, repository does not exist'],
    fails: {
      code: "STATUSCHECK_IMAGE_PULL_ERR",
      message: "container web is waiting to start: web:a97be03 can't be pulled",
      suggestions: ["Try checking container config `image`"],
    },
  });
  return together("images that were built locally are deployed to a remote cluster", [bobs, alices], {
    kinds: ["configuration"],
    text: /GKE|MINIKUBE/i,
  });
}

function missingBase(): PlantedCause {
  const [alices] = sources("render", ["alice"]) as [Recording];
  const deployers = [{ type: "KUBECTL", count: 1 }] as const;
  const process = side(alices, { labels: { ...alice, ...main }, deployers });
  goodLoop(process);
  process.loop({ dirty: "true", commit: later.commit });
  process.build("web", { ms: 10_000 });
  process.built();
  const text =
    "kustomize build k8s/overlays/dev: exit status 1\n - stdout: \"\"\n - stderr: \"Error: accumulating resources: accumulation err='accumulating resources from '../../base/redis': lstat /home/alice/shop/k8s/base/redis: no such file or directory'\"";
  process.render({ log: [text], fails: { code: "DEPLOY_KUSTOMIZE_USER_ERR", message: text } });
  return together("kustomize misses a folder that was moved", [alices], {
    kinds: ["failure"],
    text: /base\/redis|no such file/,
  });
}

function oneModule(): PlantedCause {
  const [bobs, alices] = sources("module", ["bob", "alice"]) as [Recording, Recording];
  const both: readonly Artifact[] = [{ name: "web" }, { name: "api" }];
  goodLoop(side(alices, { labels: { ...alice, ...main }, artifacts: both }), ["web", "api"]);
  const process = side(bobs, { labels: { ...bob, ...later }, artifacts: [{ name: "web" }], version: "v2.14.1" });
  process.loop();
  process.build("web", { ms: 17_000 });
  process.built();
  process.render();
  process.deploy();
  process.appLog("web", [
    '2026/11/20 09:03:11 [emerg] 1#1: host not found in upstream "api" in /etc/nginx/conf.d/default.conf:12',
  ]);
  process.check([], {
    resource: "deployment/web",
    log: [
      '      > [web-6c9f7d5b44-x2x9k web] nginx: [emerg] host not found in upstream "api" in /etc/nginx/conf.d/default.conf:12',
    ],
    fails: {
      code: "STATUSCHECK_CONTAINER_TERMINATED",
      message: "container web terminated with exit code 1",
      suggestions: ["Try checking container logs"],
    },
  });
  return together("only one module is run, and it needs the other", [bobs, alices], {
    kinds: ["artifact", "configuration", "resource"],
    subject: /\bapi\b/,
  });
}

export const skaffoldCauses: readonly PlantedCause[] = [
  armLaptop(),
  noDefaultRepo(),
  upgradedSkaffold(),
  crashAfterEdit(),
  testsOfABranch(),
  helmLock(),
  otherBuilder(),
  otherCluster(),
  missingBase(),
  oneModule(),
];

function rateLimit(): PlantedCause {
  const [bobs, alices] = sources("rate-limit", ["bob", "alice"]) as [Recording, Recording];
  goodLoop(side(alices, { labels: { ...alice, ...main }, cluster: "MINIKUBE" }));
  const process = side(bobs, { labels: { ...bob, ...later }, cluster: "OTHER", version: "v2.14.1" });
  process.loop();
  for (const { name } of shop) process.build(name, { ms: 15_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(["deployment/web", "deployment/api"], {
    resource: "deployment/cache",
    log: [
      '      > [cache-5d9 cache] Failed to pull image "redis:7": toomanyrequests: You have reached your pull rate limit.',
    ],
    fails: {
      code: "STATUSCHECK_IMAGE_PULL_ERR",
      message: "container cache is waiting to start: redis:7 can't be pulled",
    },
  });
  return together("a registry refuses more pulls", [bobs, alices], {
    kinds: ["failure", "resource"],
    text: /cache|rate limit/,
  });
}

function missingPostgres(): PlantedCause {
  const [bobs, alices] = sources("postgres", ["bob", "alice"]) as [Recording, Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  process.loop();
  for (const { name } of shop) process.build(name);
  process.built();
  process.render();
  process.deploy();
  process.check([...deployed, "statefulset/postgres"]);
  process.port(9_000, "web");
  process.succeeded();
  const failing = side(bobs, { labels: { ...bob, ...later } });
  failing.loop();
  for (const { name } of shop) failing.build(name, { ms: 9_000 });
  failing.built();
  failing.render();
  failing.deploy();
  failing.check(["deployment/web", "deployment/worker"], {
    resource: "deployment/api",
    log: ["      > [api-7b9 api] dial tcp: lookup postgres on 10.96.0.10:53: no such host"],
    fails: { code: "STATUSCHECK_CONTAINER_TERMINATED", message: "container api terminated with exit code 1" },
  });
  return together("the overlay of a developer has no database", [bobs, alices], {
    kinds: ["resource"],
    subject: /postgres/,
  });
}

function noNetwork(): PlantedCause {
  const [alices] = sources("npm", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  goodLoop(process);
  process.loop({ commit: later.commit, dirty: "true" });
  process.build("web", {
    ms: 71_000,
    log: [
      "npm ERR! code ENOTFOUND",
      "npm ERR! network request to https://registry.npmjs.org/left-pad failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org",
    ],
    fails: { code: "BUILD_DOCKER_UNKNOWN", message: "exit status 1. Docker build ran into internal error." },
  });
  return together("a build can't reach the registry of npm", [alices], {
    kinds: ["failure"],
    text: /registry\.npmjs\.org/,
  });
}

function outOfMemory(): PlantedCause {
  const [alices] = sources("memory", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  goodLoop(process);
  process.loop({ commit: later.commit });
  process.build("worker", { ms: 6_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(["deployment/web", "deployment/api"], {
    resource: "deployment/worker",
    pending: "waiting for rollout to finish: 1 old replicas are pending termination...",
    fails: { code: "STATUSCHECK_CONTAINER_TERMINATED", message: "container worker terminated with exit code 137" },
  });
  return together("a worker runs out of memory", [alices], {
    kinds: ["failure", "resource"],
    text: /worker.*137/,
  });
}

function missingSecret(): PlantedCause {
  const [bobs, alices] = sources("secret", ["bob", "alice"]) as [Recording, Recording];
  goodLoop(side(alices, { labels: { ...alice, ...main } }));
  const process = side(bobs, { labels: { ...bob, ...later, team: "payments" }, version: "v2.15.0" });
  process.loop();
  for (const { name } of shop) process.build(name, { ms: 20_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(["deployment/web", "deployment/worker"], {
    resource: "deployment/api",
    fails: {
      code: "STATUSCHECK_CONTAINER_WAITING_UNKNOWN",
      message:
        'container api in error: &ContainerStateWaiting{Reason:CreateContainerConfigError,Message:secret "stripe-key" not found,}',
    },
  });
  return together("a namespace lacks a secret", [bobs, alices], {
    kinds: ["resource", "failure"],
    text: /stripe-key/,
  });
}

function debugged(): PlantedCause {
  const [alices] = sources("debug", ["alice"]) as [Recording];
  const before = side(alices, { labels: { ...alice, ...main } });
  goodLoop(before);
  before.ended();
  const process = side(alices, { labels: { ...alice, ...later, command: "skaffold debug" } });
  process.loop();
  for (const { name } of shop) process.build(name, { ms: 7_000 });
  process.built();
  process.render();
  process.deploy();
  process.check(["deployment/web", "deployment/worker"], {
    resource: "deployment/api",
    pending: "waiting for rollout to finish: 1 old replicas are pending termination...",
    ms: 120_000,
    fails: { code: "STATUSCHECK_DEADLINE_EXCEEDED", message: "could not stabilize within 2m0s" },
  });
  return together("an app waits for its debugger and is never ready", [alices], { kinds: ["command"], text: /debug/ });
}

function misspelledField(): PlantedCause {
  const [alices] = sources("field", ["alice"]) as [Recording];
  const process = side(alices, { labels: { ...alice, ...main } });
  goodLoop(process);
  process.loop({ dirty: "true" });
  process.render();
  process.deploy({
    log: [
      ' - error: error validating "STDIN": error validating data: ValidationError(Deployment.spec.template.spec.containers[0]): unknown field "enviroment"',
    ],
    fails: { code: "DEPLOY_KUBECTL_USER_ERR", message: "kubectl apply: exit status 1" },
  });
  return together("a field of a manifest is misspelled", [alices], { kinds: ["failure"], text: /enviroment/ });
}

/** The second and the third set: written after the ranking had been read and corrected, and so not blind. */
export const laterSkaffoldCauses: readonly PlantedCause[] = [
  rateLimit(),
  missingPostgres(),
  noNetwork(),
  outOfMemory(),
  missingSecret(),
  debugged(),
  misspelledField(),
];
