import { execFile } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { lacking, systemPath } from "./testing/on-machine.ts";

type Service = {
  readonly image: string;
  readonly read_only?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly profiles?: readonly string[];
  readonly volumes?: readonly string[];
};

const infra = (name: string) => join(root, "infra", name);
const read = (name: string) => readFileSync(infra(name), "utf8");
// Compose's own tags, such as !override, are not known to it, and no matter here.
const servicesOf = (name: string) =>
  (parse(read(name), { merge: true, logLevel: "error" }) as { readonly services: Readonly<Record<string, Service>> })
    .services;
const services = servicesOf("compose.yaml");
const ours = ["ingest", "query", "gateway", "cli"];

const makeCertificates = (folder: string) =>
  promisify(execFile)("sh", [infra("docker/make-certificates.sh"), folder], { env: { PATH: systemPath } });

describe("compose.yaml", () => {
  it("runs our services from one image that can't be written", () => {
    for (const name of ours) expect([name, services[name]?.read_only]).toEqual([name, true]);
    expect(new Set(ours.map((name) => services[name]?.image)).size).toBe(1);
  });

  it("opens ports on loopback only", () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).toHaveLength(4);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it("uses settings that exist", () => {
    const page = readFileSync(join(root, "docs", "settings.md"), "utf8");
    const both = [services, servicesOf("compose.tls.yaml")];
    const used = both.flatMap((all) => ours.flatMap((name) => Object.keys(all[name]?.environment ?? {})));
    for (const variable of used) expect(page).toContain(`\`${variable}\``);
  });

  it("has no secret in it, and a script that makes those that it needs", async () => {
    const needed = new Set(read("compose.yaml").match(/(?<=\$\{)TAPEDECK_\w+(?=:\?)/g));
    const { stdout } = await promisify(execFile)("sh", [infra("docker/make-env.sh")]);
    const made = Object.fromEntries(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split("=")),
    );
    expect(new Set(Object.keys(made))).toEqual(needed.add("TAPEDECK_POSTGRES_PASSWORD"));
    expect(new Set(Object.values(made)).size).toBe(needed.size);
    for (const value of Object.values(made)) expect(value).toMatch(/^t[0-9a-f]{48}$/);
  });

  it("for a team, gives the gateway and the command line the setting that tokens are required", () => {
    const team = servicesOf("compose.team.yaml");
    for (const name of ["gateway", "cli"]) expect(team[name]?.environment).toMatchObject({ TAPEDECK_AUTH: "tokens" });
  });

  it.each(["compose.yaml", "compose.team.yaml"])(
    "with %s, gives Prometheus the alerts, and asks where it is let in",
    (name) => {
      const volumes = [...(services.prometheus?.volumes ?? []), ...(servicesOf(name).prometheus?.volumes ?? [])];
      const mounted = (path: string) =>
        volumes.findLast((volume) => volume.endsWith(`:/etc/prometheus/${path}:ro`))?.split(":")[0] ?? "";
      const config = parse(read(mounted("prometheus.yml")));
      for (const file of config.rule_files) expect(parse(read(mounted(file))).groups).not.toEqual([]);
      const targets = config.scrape_configs.flatMap(
        (job: { static_configs: readonly { targets: readonly string[] }[] }) =>
          job.static_configs.flatMap(({ targets }) => targets),
      );
      const isOpen = servicesOf(name).gateway?.environment?.TAPEDECK_AUTH !== "tokens";
      expect(targets).toEqual(["ingest:7061", "query:7062", ...(isOpen ? ["gateway:7052"] : [])]);
    },
  );

  it("with the profile grafana, brings Prometheus and Grafana, which finds its dashboards and sources", () => {
    const { prometheus, grafana, query } = services;
    expect([prometheus?.profiles, grafana?.profiles]).toEqual([["metrics", "grafana"], ["grafana"]]);
    const mounted = new Map(
      grafana?.volumes?.map((volume) => volume.split(":").slice(0, 2).toReversed() as [string, string]),
    );
    const provisioned = (path: string) => parse(read(join(mounted.get("/etc/grafana/provisioning") ?? "", path)));
    const { providers } = provisioned("dashboards/tapedeck.yaml");
    const dashboards = readdirSync(infra(mounted.get(providers[0].options.path) ?? ""));
    expect(dashboards.length).toBeGreaterThanOrEqual(5);
    // Every variable of the sources is set, and the login is one that query makes.
    const sources = read(join(mounted.get("/etc/grafana/provisioning") ?? "", "datasources/tapedeck.yaml"));
    const variables = sources.match(/\$TAPEDECK_\w+/g) ?? [];
    expect(variables.length).toBeGreaterThanOrEqual(5);
    for (const name of variables) expect(grafana?.environment).toHaveProperty(name.slice(1));
    expect(grafana?.environment).toMatchObject({ TAPEDECK_POSTGRES_READER: "tapedeck_analyst" });
    expect(query?.environment).toHaveProperty("TAPEDECK_POSTGRES_ANALYST_PASSWORD");
    expect(servicesOf("compose.tls.yaml").grafana?.environment).toEqual({ TAPEDECK_POSTGRES_SSLMODE: "require" });
  });

  it("gives each service a user of NATS of its own, and NATS the passwords of all", () => {
    for (const name of ours) {
      const password = `\${TAPEDECK_NATS_${name.toUpperCase()}_PASSWORD}`;
      expect(services[name]?.environment).toMatchObject({
        TAPEDECK_NATS_USER: name,
        TAPEDECK_NATS_PASSWORD: password,
      });
    }
    const users = read("nats/tapedeck-users.conf");
    expect(Object.keys(services.nats?.environment ?? {})).toEqual(
      [...users.matchAll(/^ +password: \$(\w+)$/gm)].map(([, variable]) => variable),
    );
  });

  it("gives NATS a configuration that it understands, and that syncs every message", async () => {
    const folder = await temporaryFolder();
    expect(read("docker/nats.conf")).toMatch(/^ {2}sync_interval: always$/m);
    await makeCertificates(folder);
    for (const file of ["docker/nats.conf", "docker/nats-tls.conf", "nats/tapedeck-users.conf"]) {
      writeFileSync(join(folder, basename(file)), read(file).replaceAll("/run/tls", folder));
    }
    const passwords = ours.map((name) => [`TAPEDECK_NATS_${name.toUpperCase()}_PASSWORD`, "x"]);
    const env = { ...process.env, ...Object.fromEntries(passwords) };
    for (const file of ["nats.conf", "nats-tls.conf"]) {
      const words = ["-c", join(folder, file), "-t"];
      const { stderr } = await promisify(execFile)(inject("natsServer"), words, { env });
      expect(stderr).toContain("is valid");
    }
  });

  it("has a script that makes a certificate for all servers, of an authority whose key is nowhere", async () => {
    const folder = await temporaryFolder();
    await makeCertificates(folder);
    expect(readdirSync(folder).toSorted()).toEqual(["ca.crt", "tls.crt", "tls.key"]);
    const [authority, certificate] = ["ca.crt", "tls.crt"].map(
      (name) => new X509Certificate(readFileSync(join(folder, name))),
    );
    if (authority === undefined || certificate === undefined) throw new Error("no certificates");
    expect([certificate.verify(authority.publicKey), certificate.checkIssued(authority)]).toEqual([true, true]);
    for (const name of ["nats", "postgres", "ingest", "query"]) expect(certificate.checkHost(name)).toBe(name);
    const key = createPrivateKey(readFileSync(join(folder, "tls.key")));
    expect([certificate.checkPrivateKey(key), authority.checkPrivateKey(key)]).toEqual([true, false]);
  });

  it.each([
    ["there is no openssl", undefined, /make-certificates\.sh needs openssl 3/],
    ["openssl fails", '#!/bin/sh\necho "unknown option -copy_extensions" >&2\nexit 1\n', /unknown option -copy_ext/],
  ])("has a script that says why it makes no certificate where %s", async (_what, openssl, reason) => {
    const folder = await temporaryFolder();
    const path = join(folder, "bin");
    mkdirSync(path);
    for (const name of ["mkdir", "mktemp", "rm", "chmod", "chown"]) {
      writeFileSync(join(path, name), `#!/bin/sh\nPATH=${systemPath} exec ${name} "$@"\n`, { mode: 0o755 });
    }
    if (openssl !== undefined) writeFileSync(join(path, "openssl"), openssl, { mode: 0o755 });
    const script = infra("docker/make-certificates.sh");
    const made = promisify(execFile)("/bin/sh", [script, join(folder, "tls")], { env: { PATH: path } });
    await expect(made).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(reason) });
  });

  it("with compose.tls.yaml, lets nothing talk to another without TLS", () => {
    const withTls = servicesOf("compose.tls.yaml");
    const env = (name: string) => withTls[name]?.environment ?? {};
    for (const name of ours) expect([name, env(name).TAPEDECK_NATS_URL]).toEqual([name, "tls://nats:4222"]);
    for (const name of ["query", "cli"])
      expect(env(name).TAPEDECK_POSTGRES_URL).toMatch(/\?sslmode=verify-full&sslrootcert=/);
    for (const name of ["ingest", "query"]) expect(env(name)).toHaveProperty("TAPEDECK_SERVICES_TLS_CERT");
    expect(env("gateway")).toHaveProperty("TAPEDECK_SERVICES_TLS_CA");
  });

  const why = lacking(["docker-compose"], { asRoot: false });
  it.skipIf(why !== undefined)(
    `is understood by Compose, alone, and with TLS for a team${why ? ` (${why})` : ""}`,
    async () => {
      const secrets = Object.fromEntries(
        [...read("docker/make-env.sh").matchAll(/\b[A-Z]+(_[A-Z]+)+\b/g)].map(([name]) => [`TAPEDECK_${name}`, "x"]),
      );
      const tls = { TAPEDECK_TLS: "/etc/tls", TAPEDECK_SERVICES_TLS: "/etc/services-tls" };
      const env = { PATH: systemPath, ...secrets, ...tls, TAPEDECK_HOST: "deck.example" };
      const config = async (...files: readonly string[]) => {
        const words = [...files.flatMap((file) => ["--file", infra(file)]), "--profile", "grafana", "--profile", "cli"];
        const { stdout } = await promisify(execFile)("docker-compose", [...words, "config", "--format", "json"], {
          env,
        });
        return JSON.parse(stdout).services;
      };
      expect(Object.keys(await config("compose.yaml"))).toEqual(expect.arrayContaining(Object.keys(services)));
      const { gateway, ingest, nats } = await config("compose.yaml", "compose.tls.yaml", "compose.team.yaml");
      expect(ingest.environment).toMatchObject({ TAPEDECK_NATS_USER: "ingest", TAPEDECK_NATS_URL: "tls://nats:4222" });
      expect(nats.volumes.map(({ target }: { readonly target: string }) => target)).toEqual(
        expect.arrayContaining(["/data", "/etc/nats/nats.conf", "/etc/nats/nats-tls.conf", "/run/tls"]),
      );
      expect(gateway.environment).toMatchObject({ TAPEDECK_AUTH: "tokens", TAPEDECK_INSECURE: "false" });
      expect(gateway.ports).toEqual([
        expect.not.objectContaining({ host_ip: expect.anything() }),
        expect.not.objectContaining({ host_ip: expect.anything() }),
      ]);
    },
  );
});
