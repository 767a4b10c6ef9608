import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";
import { lacking, systemPath } from "./testing/on-machine.ts";

type Service = {
  readonly image: string;
  readonly read_only?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly profiles?: readonly string[];
};

const infra = (name: string) => join(root, "infra", name);
const read = (name: string) => readFileSync(infra(name), "utf8");
const services = (parse(read("compose.yaml"), { merge: true }) as { readonly services: Record<string, Service> })
  .services;
const ours = ["ingest", "query", "gateway", "cli"];

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
    const used = ours.flatMap((name) => Object.keys(services[name]?.environment ?? {}));
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
    for (const value of Object.values(made)) expect(value).toMatch(/^t[0-9a-f]{48}$/);
  });

  it("gives NATS a configuration that it understands, and that syncs every message", async () => {
    const file = infra("docker/nats.conf");
    expect(read("docker/nats.conf")).toMatch(/^ {2}sync_interval: always$/m);
    const env = { ...process.env, TAPEDECK_NATS_PASSWORD: "x" };
    const { stderr } = await promisify(execFile)(inject("natsServer"), ["-c", file, "-t"], { env });
    expect(stderr).toContain("is valid");
  });

  const why = lacking(["docker-compose"], { asRoot: false });
  it.skipIf(why !== undefined)(`is understood by Compose, alone and for a team${why ? ` (${why})` : ""}`, async () => {
    const secrets = Object.fromEntries(
      ["SERVICES_KEY", "NATS_PASSWORD", "POSTGRES_PASSWORD", "GRAFANA_PASSWORD"].map((name) => [
        `TAPEDECK_${name}`,
        "x",
      ]),
    );
    const env = { PATH: systemPath, ...secrets, TAPEDECK_HOST: "deck.example", TAPEDECK_TLS: "/etc/tls" };
    const config = async (...files: readonly string[]) => {
      const words = [...files.flatMap((file) => ["--file", infra(file)]), "--profile", "metrics", "--profile", "cli"];
      const { stdout } = await promisify(execFile)("docker-compose", [...words, "config", "--format", "json"], { env });
      return JSON.parse(stdout).services;
    };
    expect(Object.keys(await config("compose.yaml"))).toEqual(expect.arrayContaining(Object.keys(services)));
    const { gateway } = await config("compose.yaml", "compose.team.yaml");
    expect(gateway.environment).toMatchObject({ TAPEDECK_AUTH: "tokens", TAPEDECK_INSECURE: "false" });
    expect(gateway.ports).toEqual([
      expect.not.objectContaining({ host_ip: expect.anything() }),
      expect.not.objectContaining({ host_ip: expect.anything() }),
    ]);
  });
});
