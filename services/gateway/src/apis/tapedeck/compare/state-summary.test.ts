import { expect, it } from "vitest";
import type { FoundByName } from "./side-summary.ts";
import { stateSummary } from "./state-summary.ts";

const [here, configuredAt] = ["383700-t3k9x2", "383600-t3k9x2"];
const values = (named: FoundByName | undefined) =>
  Object.fromEntries([...(named ?? [])].map(([name, { value }]) => [name, value]));

const v1 = {
  buildState: { artifacts: { web: "Complete" }, autoTrigger: true },
  deployState: { autoTrigger: false },
  statusCheckState: { resources: { "deployment/web": "Succeeded" } },
  forwardedPorts: { 9080: { localPort: 9080, remotePort: 8080, resourceType: "service", resourceName: "web" } },
  debuggingContainers: [{ artifact: "web", containerName: "app", runtime: "nodejs" }],
  metadata: {
    build: { type: "LOCAL", builders: [{ type: "DOCKER", count: 1 }] },
    deploy: { cluster: "MINIKUBE", deployers: [{ type: "HELM", count: 2 }] },
  },
};

it("Skaffold's state shows configuration, artifacts, resources, ports and debuggers", () => {
  const artifacts = [
    { name: "web", type: "DOCKER", context: "web", dockerfile: "Dockerfile" },
    { name: "api", type: "CUSTOM", context: "api", dockerfile: "" },
  ];
  const v2 = {
    ...v1,
    statusCheckState: { resources: { "deployment/web": "InProgress" } },
    metadata: { ...v1.metadata, build: { type: "LOCAL", artifacts } },
  };
  const summary = stateSummary("skaffold", { v1, v2 }, here, configuredAt);
  expect(values(summary.settings)).toEqual({
    "build.type": "LOCAL",
    "build.web.type": "DOCKER",
    "build.web.context": "web",
    "build.web.dockerfile": "Dockerfile",
    "build.api.type": "CUSTOM",
    "build.api.context": "api",
    "deploy.cluster": "MINIKUBE",
    "deploy.helm": "2",
    "build.automatic": "true",
    "deploy.automatic": "false",
  });
  expect(summary.settings.get("build.type")?.position).toBe(configuredAt);
  expect(Object.keys(values(summary.artifacts))).toEqual(["web", "api"]);
  expect(values(summary.resources)).toEqual({ "deployment/web": "in progress" });
  expect(summary.resources.get("deployment/web")?.position).toBe(here);
  expect(values(summary.ports)).toEqual({ "service/web:8080": "localhost:9080" });
  expect(values(summary.debuggers)).toEqual({ "web/app": "nodejs" });
});

it("a Skaffold with the first API alone shows as much as that has", () => {
  const summary = stateSummary("skaffold", { v1 }, here, configuredAt);
  expect(values(summary.settings)).toMatchObject({ "build.type": "LOCAL", "deploy.helm": "2" });
  expect(Object.keys(values(summary.artifacts))).toEqual(["web"]);
  expect(values(summary.resources)).toEqual({ "deployment/web": "ready" });
});

it("Vagrant's shows machines and boxes, rkt's apps and images", () => {
  const vagrant = stateSummary(
    "vagrant",
    {
      targets: [{ name: "web1", state: "CREATED" }],
      boxes: [{ name: "debian/12", provider: "libvirt", version: "12.1" }],
    },
    here,
    configuredAt,
  );
  expect([values(vagrant.resources), values(vagrant.settings)]).toEqual([
    { web1: "created" },
    { "box.debian/12.libvirt": "12.1" },
  ]);
  const rkt = stateSummary(
    "rkt",
    {
      info: { rkt_version: "1.30.0" },
      pods: [{ apps: [{ name: "batch", state: "APP_STATE_EXITED", exit_code: 7 }] }],
      images: [{ name: "busybox", version: "1.36" }],
    },
    here,
    configuredAt,
  );
  expect([values(rkt.resources), values(rkt.settings)]).toEqual([
    { batch: "exited 7" },
    { "image.busybox": "1.36", "host.rkt_version": "1.30.0" },
  ]);
});

it("a Skaffold whose second API broke shows what the first one says", () => {
  const summary = stateSummary("skaffold", { v1, v2: { statusCheckState: { resources: {} } } }, here, configuredAt);
  expect(values(summary.resources)).toEqual({ "deployment/web": "ready" });
});

it("rkt's shows of the newest pod of an app which image, network and manifest it has", () => {
  const api = (version: string, id: string) => ({ name: "acme/api", version, id });
  const pods = [
    {
      id: "b",
      created_at: "20",
      state: "POD_STATE_PREPARED",
      apps: [{ name: "api", image: api("2.0", "sha512-bbbb") }],
    },
    {
      id: "a",
      created_at: "10",
      networks: [{ name: "default", ipv4: "172.16.28.2" }],
      apps: [
        { name: "api", state: "APP_STATE_EXITED", exit_code: 1, image: api("1.0", "sha512-aaaa") },
        { name: "proxy", state: "APP_STATE_RUNNING" },
      ],
    },
  ];
  const images = [
    { id: "sha512-bbbbbb", name: "acme/api", version: "2.0", labels: [{ Key: "arch", value: "arm64" }] },
    { id: "sha512-aaaaaa", name: "acme/api", version: "1.0", labels: [{ Key: "arch", value: "amd64" }] },
  ];
  const manifest = {
    apps: [
      {
        name: "api",
        app: {
          exec: ["/bin/api", "--verbose"],
          environment: [{ name: "REGION", value: "eu" }],
          isolators: [{ name: "resource/memory", value: { limit: "1G" } }],
        },
        mounts: [{ volume: "data", path: "/data" }],
      },
    ],
    volumes: [{ name: "data", kind: "host", source: "/srv/data" }],
  };
  const summary = stateSummary("rkt", { pods, images }, here, configuredAt, new Map([["b", manifest]]));
  expect([values(summary.resources), values(summary.settings)]).toEqual([
    { api: "prepared", proxy: "running" },
    {
      "image.acme/api": "2.0",
      "content.acme/api": "sha512-bbbb",
      "arch.acme/api": "arm64",
      "network.proxy": "default",
      "exec.api": "/bin/api --verbose",
      "env.api.REGION": "eu",
      "mount.api./data": "/srv/data",
      "limit.api.resource/memory": '{"limit":"1G"}',
    },
  ]);
});

it.each(["skaffold", "vagrant", "rkt", "bazel"])("nothing is concluded of %s that shows nothing", (upstream) => {
  for (const state of [{}, null, { v1: null, v2: [] }, { targets: {}, pods: "none" }]) {
    const summary = stateSummary(upstream, state, here, configuredAt);
    expect([summary.settings.size, summary.resources.size, summary.ports.size, summary.artifacts]).toEqual([
      0,
      0,
      0,
      undefined,
    ]);
  }
});
