import type { PlantedCause } from "./planted-cause.ts";
import { type Recording, recording } from "./recording.ts";
import { rktHost, type StoredImage } from "./rkt-host.ts";

// Causes that break pods on one of two hosts, or on the same host after a while.

type Host = ReturnType<typeof rktHost>;

const image = (name: string, version: string, more: Partial<StoredImage> = {}): StoredImage => ({
  name: `registry.acme.dev/${name}`,
  version,
  ...more,
});
const stage1 = (version: string): StoredImage => ({ name: "coreos.com/rkt/stage1-coreos", version });
const [api, redis, postgres] = [image("api", "2.4.0"), image("redis", "6.2.1"), image("postgres", "13.4")];
const nodeExporter = image("node-exporter", "1.3.1");

function hosts(project: string): [Recording, Recording] {
  return [recording("node-2", project, "rkt"), recording("node-1", project, "rkt")];
}

function together(name: string, [left, right]: readonly Recording[], cause: PlantedCause["cause"]): PlantedCause {
  if (left === undefined) throw new Error("no failing side");
  const events = [...(right?.events ?? []), ...left.events];
  return { name, left: left.source, ...(right && { right: right.source }), events, cause };
}

/** A host with a store, running the api and its redis. */
function goodHost(of: Recording, { version = "1.30.0", images = [api, redis] } = {}): Host {
  const host = rktHost(of, { version });
  host.poll();
  host.images(stage1(version), ...images);
  host.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  host.running({ apps: { api }, network: ["default", "172.16.28.3"] });
  return host;
}

function newImage(): PlantedCause {
  const [bad, good] = hosts("new-image");
  goodHost(good, { images: [api, redis, image("redis", "6.0.9")] });
  const host = rktHost(bad);
  host.poll();
  const newer = image("api", "2.4.1");
  host.images(nodeExporter, newer, redis, stage1("1.30.0"));
  host.running({ apps: { "node-exporter": nodeExporter }, network: ["default", "172.16.28.9"] });
  host.running({ apps: { redis }, network: ["default", "172.16.28.11"] });
  const pod = host.running({ apps: { api: newer }, network: ["default", "172.16.28.12"] });
  host.exited(pod, { api: 1 });
  return together("a host has a newer image of the app that fails", [bad, good], {
    kinds: ["configuration", "version"],
    text: /2\.4\.1/,
  });
}

function oldRkt(): PlantedCause {
  const [bad, good] = hosts("old-rkt");
  goodHost(good);
  const host = rktHost(bad, { version: "1.25.0" });
  host.poll();
  host.images(redis, api, stage1("1.25.0"));
  for (const apps of [{ redis }, { api }]) {
    const pod = host.prepared({ apps });
    host.exited(pod);
  }
  return together("a host with an old rkt starts no pods", [bad, good], {
    kinds: ["version"],
  });
}

function otherArchitecture(): PlantedCause {
  const [bad, good] = hosts("architecture");
  const amd = image("api", "latest", { content: "c0ffee" });
  const arm = image("api", "latest", { content: "badcab", arch: "arm64" });
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), amd, redis);
  first.running({ apps: { redis } });
  first.running({ apps: { api: amd } });
  const host = rktHost(bad);
  host.poll();
  host.images(redis, arm, stage1("1.30.0"), nodeExporter);
  host.running({ apps: { redis }, network: ["default", "172.16.28.41"] });
  const pod = host.running({ apps: { api: arm }, network: ["default", "172.16.28.42"] });
  host.log(pod, "api", ["Failed at step EXEC spawning /bin/api: Exec format error"]);
  host.exited(pod, { api: 203 });
  return together("a host has the image of another architecture", [bad, good], {
    kinds: ["platform", "configuration"],
    text: /arm64/,
  });
}

function otherNetwork(): PlantedCause {
  const [bad, good] = hosts("network");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), api, redis);
  first.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  first.running({ apps: { api }, network: ["db-net", "10.20.0.7"] });
  const host = rktHost(bad);
  host.poll();
  host.images(api, stage1("1.30.0"), redis);
  host.running({ apps: { redis }, network: ["default", "172.16.28.30"] });
  const pod = host.running({ apps: { api }, network: ["default", "172.16.28.31"] });
  host.log(pod, "api", [
    "listening on :8080",
    "FATAL connect to database: dial tcp 10.20.0.5:5432: connect: no route to host",
  ]);
  host.exited(pod, { api: 1 });
  return together("a pod was started in the default network", [bad, good], {
    kinds: ["configuration", "resource", "port"],
    text: /db-net/,
  });
}

function filePermissions(): PlantedCause {
  const [bad, good] = hosts("permissions");
  goodHost(good, { images: [api, redis, image("redis", "6.0.9")] });
  const host = rktHost(bad);
  host.poll();
  const newerRedis = image("redis", "6.2.3");
  host.images(newerRedis, api, nodeExporter, stage1("1.30.0"));
  host.running({ apps: { redis: newerRedis }, network: ["default", "172.16.28.51"] });
  host.running({ apps: { "node-exporter": nodeExporter }, network: ["default", "172.16.28.52"] });
  const pod = host.running({ apps: { api }, network: ["default", "172.16.28.53"] });
  host.log(pod, "api", ["api 2.4.0 starts", "FATAL open /etc/api/config.yaml: permission denied"]);
  host.exited(pod, { api: 1 });
  return together("a configuration file can't be read on one host", [bad, good], {
    kinds: ["failure"],
    text: /permission denied/,
  });
}

function missingVolume(): PlantedCause {
  const search = image("search", "0.9.2");
  const of = recording("node-1", "volume", "rkt");
  const host = rktHost(of);
  host.poll();
  host.images(stage1("1.30.0"), search, redis);
  host.running({ apps: { redis } });
  const volumes = [{ name: "index", source: "/srv/search", path: "/var/lib/search" }];
  const good = host.running({ apps: { search }, volumes, network: ["default", "172.16.28.8"] });
  const rightAfter = of.events.length;
  of.pass(3_600_000);
  host.exited(good);
  host.removed(good);
  host.running({ apps: { "node-exporter": nodeExporter } });
  const pod = host.running({ apps: { search }, network: ["default", "172.16.28.9"] });
  host.log(pod, "search", ["panic: open /var/lib/search/segments_1: no such file or directory"]);
  host.exited(pod, { search: 2 });
  return {
    name: "a pod was started again without its volume",
    left: of.source,
    right: of.source,
    rightAfter,
    events: of.events,
    cause: { kinds: ["configuration", "resource"], text: /volume|mount|\/var\/lib\/search|\/srv\/search/ },
  };
}

function missingDatabase(): PlantedCause {
  const [bad, good] = hosts("database");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), postgres, api, redis);
  first.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  first.running({ apps: { postgres }, network: ["default", "172.16.28.3"] });
  first.running({ apps: { api }, network: ["default", "172.16.28.4"] });
  const host = rktHost(bad);
  host.poll();
  host.images(api, redis, postgres, stage1("1.30.0"));
  host.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  host.prepared({ apps: { postgres } });
  const pod = host.running({ apps: { api }, network: ["default", "172.16.28.5"] });
  host.log(pod, "api", ["could not connect to server: Connection refused", "is the server running on 172.16.28.3?"]);
  host.exited(pod, { api: 1 });
  return together("the database was prepared and never started", [bad, good], {
    kinds: ["resource"],
    subject: /postgres/,
  });
}

export const rktCauses: readonly PlantedCause[] = [
  newImage(),
  oldRkt(),
  otherArchitecture(),
  otherNetwork(),
  filePermissions(),
  missingVolume(),
  missingDatabase(),
];

function missingVariable(): PlantedCause {
  const [bad, good] = hosts("variable");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), api, redis);
  first.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  first.running({ apps: { api }, environment: { SMTP_HOST: "mail.acme.dev", NODE_NAME: "node-1" } });
  const host = rktHost(bad);
  host.poll();
  host.images(redis, stage1("1.30.0"), api, nodeExporter);
  host.running({ apps: { redis }, network: ["default", "172.16.28.61"] });
  const pod = host.running({ apps: { api }, environment: { NODE_NAME: "node-2" } });
  host.log(pod, "api", ["Traceback (most recent call last):", "KeyError: 'SMTP_HOST'"]);
  host.exited(pod, { api: 1 });
  return together("a variable was forgotten", [bad, good], { kinds: ["configuration"], subject: /SMTP_HOST/ });
}

function smallMemory(): PlantedCause {
  const [bad, good] = hosts("limit");
  const batch = image("batch", "5.0.1");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), batch, redis);
  first.running({ apps: { redis } });
  first.running({ apps: { batch }, memory: "2G", environment: { NODE_NAME: "node-1" } });
  const host = rktHost(bad);
  host.poll();
  host.images(batch, image("redis", "6.2.3"), stage1("1.30.0"));
  host.running({ apps: { redis: image("redis", "6.2.3") } });
  const pod = host.running({ apps: { batch }, memory: "256M", environment: { NODE_NAME: "node-2" } });
  host.log(pod, "batch", ['Exception in thread "main" java.lang.OutOfMemoryError: Java heap space']);
  host.exited(pod, { batch: 3 });
  return together("a pod has less memory than elsewhere", [bad, good], {
    kinds: ["configuration"],
    subject: /memory/,
  });
}

function otherContent(): PlantedCause {
  const [bad, good] = hosts("content");
  const [one, other] = [image("api", "latest", { content: "aaaaaa" }), image("api", "latest", { content: "bbbbbb" })];
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), one, redis);
  first.running({ apps: { redis }, network: ["default", "172.16.28.2"] });
  first.running({ apps: { api: one }, network: ["default", "172.16.28.3"] });
  const host = rktHost(bad);
  host.poll();
  host.images(redis, other, stage1("1.30.0"), nodeExporter);
  host.running({ apps: { redis }, network: ["default", "172.16.28.71"] });
  host.running({ apps: { "node-exporter": nodeExporter }, network: ["default", "172.16.28.72"] });
  const pod = host.running({ apps: { api: other }, network: ["default", "172.16.28.73"] });
  host.exited(pod, { api: 1 });
  return together("the latest image is another one than elsewhere", [bad, good], {
    kinds: ["configuration"],
    subject: /api/,
  });
}

function sidecar(): PlantedCause {
  const [bad, good] = hosts("sidecar");
  const proxy = image("proxy", "1.18.2");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), proxy, api);
  first.running({ apps: { api, proxy }, network: ["default", "172.16.28.2"] });
  const host = rktHost(bad);
  host.poll();
  host.images(proxy, api, nodeExporter, stage1("1.30.0"));
  host.running({ apps: { "node-exporter": nodeExporter }, network: ["default", "172.16.28.81"] });
  const pod = host.running({ apps: { api, proxy }, network: ["default", "172.16.28.82"] });
  host.log(pod, "proxy", ["cannot bind 0.0.0.0:9100: Address already in use"]);
  host.log(pod, "api", ["received SIGTERM, shutting down"]);
  host.exited(pod, { proxy: 1, api: 15 });
  return together("a proxy finds its port taken, and its pod ends with it", [bad, good], {
    kinds: ["failure", "resource"],
    text: /proxy|already in use/,
  });
}

function otherArguments(): PlantedCause {
  const [bad, good] = hosts("arguments");
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), api, redis);
  first.running({ apps: { redis } });
  first.running({ apps: { api }, args: ["--config", "/etc/api/dev.yaml"] });
  const host = rktHost(bad);
  host.poll();
  host.images(redis, api, stage1("1.30.0"));
  host.running({ apps: { redis }, network: ["default", "172.16.28.91"] });
  const pod = host.running({ apps: { api }, args: ["--config", "/etc/api/prod.yaml"] });
  host.log(pod, "api", ["FATAL /etc/api/prod.yaml: tls.cert is required"]);
  host.exited(pod, { api: 2 });
  return together("a pod was started with another configuration file", [bad, good], {
    kinds: ["configuration"],
    subject: /exec/,
  });
}

function brokerFailed(): PlantedCause {
  const [bad, good] = hosts("broker");
  const [rabbitmq, worker] = [image("rabbitmq", "3.8.9"), image("worker", "1.7.0")];
  const first = rktHost(good);
  first.poll();
  first.images(stage1("1.30.0"), rabbitmq, worker);
  first.running({ apps: { rabbitmq }, network: ["default", "172.16.28.3"] });
  first.running({ apps: { worker }, network: ["default", "172.16.28.4"] });
  const host = rktHost(bad);
  host.poll();
  host.images(worker, nodeExporter, rabbitmq, stage1("1.30.0"));
  const broker = host.running({ apps: { rabbitmq }, network: ["default", "172.16.28.3"] });
  const pod = host.running({ apps: { worker }, network: ["default", "172.16.28.4"] });
  host.log(broker, "rabbitmq", ["Error: {enospc, no space left on device}"]);
  host.exited(broker, { rabbitmq: 1 });
  host.log(pod, "worker", ["FATAL dial tcp 172.16.28.3:5672: connect: connection refused"]);
  host.exited(pod, { worker: 1 });
  return together("the broker has no space, and a worker fails with it", [bad, good], {
    kinds: ["failure", "resource"],
    text: /rabbitmq/,
  });
}

function newDependency(): PlantedCause {
  const [bad, good] = hosts("dependency");
  goodHost(good, { images: [api, redis, nodeExporter] });
  const host = rktHost(bad);
  const newer = image("redis", "7.0.0");
  host.poll();
  host.images(newer, api, stage1("1.30.0"));
  host.running({ apps: { redis: newer }, network: ["default", "172.16.28.95"] });
  const pod = host.running({ apps: { api }, network: ["default", "172.16.28.96"] });
  host.log(pod, "api", ["FATAL redis 7.0.0 is not supported"]);
  host.exited(pod, { api: 1 });
  return together("an app does not work with a newer redis", [bad, good], {
    kinds: ["configuration"],
    subject: /redis/,
  });
}

/** The second and the third set: written after the ranking had been read and corrected, and so not blind. */
export const laterRktCauses: readonly PlantedCause[] = [
  missingVariable(),
  smallMemory(),
  otherContent(),
  sidecar(),
  otherArguments(),
  brokerFailed(),
  newDependency(),
];
