import { chown, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { testAuthority } from "@tapedeck/shared/testing/certificates";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { version } from "@tapedeck/shared/version";
import type { RunningCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../dist/places.ts";
import { built } from "../dist/testing/built.ts";
import { makeBaseImages } from "./testing/base-images.ts";
import { type NatsUser, startComposeNats } from "./testing/compose-nats.ts";
import { type StartContainer, startContainer } from "./testing/container.ts";
import { startFake } from "./testing/fake-skaffold.ts";
import { ImageStore } from "./testing/image-store.ts";
import { lacking, onMachine } from "./testing/on-machine.ts";

const why = lacking(["buildah", "skopeo", "umoci", "runc", "mmdebstrap"]);

/** The fields of an image's manifest and configuration that are checked. */
type Manifest = { readonly config: { readonly digest: string }; readonly layers: readonly { readonly size: number }[] };
type ImageConfig = { readonly config: Readonly<Record<string, unknown>> };

/** The Dockerfile, built, inspected and run without an engine. */
describe.skipIf(why !== undefined)(`the image${why === undefined ? "" : ` (${why})`}`, { timeout: 600_000 }, () => {
  let folder = "";
  const at = (name: string) => join(folder, name);
  const json = async <T>(name: string): Promise<T> => JSON.parse(await readFile(at(name), "utf8"));

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tapedeck-image-"));
    await using dist = await built("npm");
    await onMachine("cp", ["-r", "--parents", "infra/docker/entrypoint.sh", folder], root);
    await onMachine("mkdir", [at("dist")]);
    await onMachine("sh", ["-c", `cp ${dist.folder}/*.tgz ${at("dist")}`]);
    const store = new ImageStore(at("store"));
    await makeBaseImages(store, folder);
    await store.build("tapedeck", join(root, "infra/docker/Dockerfile"), folder);
    await store.push("tapedeck", `dir:${at("image")}`);
    await rm(at("store"), { recursive: true });
    await onMachine("skopeo", ["copy", `dir:${at("image")}`, `oci:${at("layout")}:tapedeck`]);
    await onMachine("umoci", ["unpack", "--image", `${at("layout")}:tapedeck`, at("bundle")]);
  }, 1_200_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const run = (
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
    more: Pick<StartContainer, "entrypoint" | "mounted"> = {},
  ) => startContainer({ bundle: at("bundle"), words, env, ...more });

  const toEnd = async (container: Promise<RunningCli>) => {
    const running = await container;
    const code = await running.ended;
    return { code, stdout: running.stdout(), stderr: running.stderr() };
  };

  it("is small, names its user, and checks its health", async () => {
    const { layers, config } = await json<Manifest>("image/manifest.json");
    const bytes = layers.reduce((sum, { size }) => sum + size, 0);
    console.log(`${layers.length} layers, ${(bytes / 1e6).toFixed(1)} MB compressed`);
    expect(bytes).toBeLessThan(120e6);
    const image = await json<ImageConfig>(join("image", config.digest.replace("sha256:", "")));
    expect(image.config).toMatchObject({
      User: "10001:10001",
      Entrypoint: ["tapedeck-image"],
      Healthcheck: { Test: ["CMD", "tapedeck-image", "check"] },
    });
    const reported = JSON.parse(await onMachine("skopeo", ["inspect", "--config", `oci:${at("layout")}:tapedeck`]));
    expect(reported).toMatchObject({ os: "linux", config: { User: "10001:10001", StopSignal: "SIGTERM" } });
  });

  it("runs as a user that may change nothing", async () => {
    const script =
      "id -u; id -g; touch /x /opt/tapedeck/x /usr/local/bin/node 2>&1; touch /tmp/x /var/lib/tapedeck/spill/x";
    const { code, stdout } = await toEnd(run([script], {}, { entrypoint: ["sh", "-c"] }));
    expect([code, stdout.split("\n").slice(0, 2)]).toEqual([0, ["10001", "10001"]]);
    expect(stdout.match(/Read-only file system|Permission denied/g)).toHaveLength(3);
    expect(stdout).toContain("touch: cannot touch '/x': Read-only file system");
  });

  it("is the CLI, and says what is wrong with a service's settings", async () => {
    expect(await toEnd(run(["--version"]))).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    expect((await toEnd(run(["tapedeck", "--version"]))).stdout).toBe(`${version}\n`);
    const refused = await toEnd(run(["gateway"], { TAPEDECK_GATEWAY_HTTP_HOST: "0.0.0.0" }));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("beyond loopback")]);
    expect((await toEnd(run(["check"], { TAPEDECK_GATEWAY_HTTP_PORT: `${await ownPort()}` }))).code).toBe(1);
  });

  /** The files of compose.tls.yaml's folder, readable by the image's user, for this machine's own names. */
  const servicesTls = async () => {
    const mounted = at("services-tls");
    await mkdir(mounted);
    const authority = await testAuthority(mounted, "authority");
    const certificate = await authority.issue(mounted, "services");
    await rename(authority.certFile, join(mounted, "ca.crt"));
    await chown(certificate.keyFile, 10_001, 10_001);
    const inside = (file: string) => join("/run/services-tls", basename(file));
    return {
      mounted,
      certificate,
      trusting: { TAPEDECK_NATS_CA: inside("ca.crt"), TAPEDECK_SERVICES_TLS_CA: inside("ca.crt") },
      listening: {
        TAPEDECK_SERVICES_TLS_CERT: inside(certificate.certFile),
        TAPEDECK_SERVICES_TLS_KEY: inside(certificate.keyFile),
      },
    };
  };

  it("records a Skaffold with a user of NATS for each service and TLS between all, and serves it again", async () => {
    await using stack = new AsyncDisposableStack();
    const { mounted, certificate, trusting, listening } = await servicesTls();
    const nats = stack.use(await startComposeNats(certificate));
    const database = stack.use(await freshDatabase());
    const fake = stack.use(await startFake(recordingFolder("12-skaffold-build-one-shot")));
    const ports = {
      GATEWAY_GRPC: 0,
      GATEWAY_HTTP: 0,
      QUERY_GRPC: 0,
      QUERY_HEALTH: 0,
      INGEST_GRPC: 0,
      INGEST_HEALTH: 0,
    };
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await ownPort();
    const env = {
      ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [`TAPEDECK_${name}_PORT`, `${port}`])),
      TAPEDECK_NATS_URL: nats.url,
      ...trusting,
      TAPEDECK_NATS_SYNC_ALWAYS: "true",
      TAPEDECK_SERVICES_KEY: "a key for this test",
      TAPEDECK_POSTGRES_URL: database.url,
      TAPEDECK_QUERY_ADDRESS: `127.0.0.1:${ports.QUERY_GRPC}`,
      TAPEDECK_INGEST_ADDRESS: `127.0.0.1:${ports.INGEST_GRPC}`,
      TAPEDECK_SOURCES: JSON.stringify([{ developer: "alice", project: "shop", address: `127.0.0.1:${fake.port}` }]),
    };
    const services = ["ingest", "query", "gateway"] as const;
    const envOf = (user: NatsUser) => ({
      ...env,
      ...nats.loginOf(user),
      ...(user === "ingest" || user === "query" ? listening : {}),
    });
    const running = await Promise.all(
      services.map(async (service) => stack.use(await run([service], envOf(service), { mounted }))),
    );
    const output = () => running.map((one) => one.stderr()).join("\n");
    for (const service of services) {
      await until(
        async () => (await toEnd(run(["check", "--ready", service], envOf(service), { mounted }))).code === 0,
        {
          message: `${service} to be ready`,
        },
      ).catch((cause) => {
        throw new Error(output(), { cause });
      });
    }
    const url = `http://127.0.0.1:${ports.GATEWAY_HTTP}`;
    const events = async () => (await fetch(`${url}/api/v1/events?kind=build.succeeded&source=alice/shop`)).text();
    await until(async () => (await events()).includes("build.succeeded"), { message: "the build to be recorded" });
    // Skaffold's own API, and the CLI of the image.
    const history = await fetch(`${url}/v1/events?source=alice/shop`);
    const { value } = (await history.body?.getReader().read()) ?? {};
    expect(Buffer.from(value ?? []).toString()).toContain('"result"');
    const tail = ["tail", "--after", "start", "--no-follow", "--json"];
    const shown = await toEnd(run(tail, { TAPEDECK_URL: url, TAPEDECK_GRPC_PORT: `${ports.GATEWAY_GRPC}` }));
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining("build.succeeded")]);
    const token = ["token", "create", "--data", "/tmp", "--name", "first", "--role", "admin", "--quiet"];
    const made = await toEnd(run(token, { ...envOf("cli"), TAPEDECK_URL: url }, { mounted }));
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^tdk_/)]);
    expect(await nats.logged()).not.toContain("Violation");
    // `docker stop` and a pod's end.
    for (const { child } of running) child.kill("SIGTERM");
    expect(await Promise.all(running.map(({ ended }) => ended))).toEqual([0, 0, 0]);
  });
});
