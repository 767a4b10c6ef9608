import { mkdtemp, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { testAuthority } from "@tapedeck/shared/testing/certificates";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { expect, inject, it } from "vitest";
import { parse } from "yaml";
import { startStack } from "../stack/stack.ts";

// The gateway and the command line of compose.team.yaml, without containers: their environment as Compose gives it to them,
// but for the ports of the test, and for the folder that both see as /run/tls.

type Environment = Readonly<Record<string, string>>;

/** What Compose makes of a text: `${A}`, `${A:?what it is}`, `${A:-otherwise}` and `${A:+if it is set}`, also within another. */
function interpolated(text: string, variables: Environment): string {
  const made = text.replaceAll(/\$\{(\w+)(?::([-?+])([^${}]*))?\}/g, (_, name, operator, word = "") => {
    const value = variables[name] ?? "";
    if (operator === "+") return value === "" ? "" : word;
    if (operator === "?" && value === "") throw new Error(`${name}: ${word}`);
    return value === "" && operator === "-" ? word : value;
  });
  return made === text ? text : interpolated(made, variables);
}

async function readTeam(variables: Environment) {
  const files = await Promise.all(
    ["compose.yaml", "compose.team.yaml"].map(async (name) => {
      const text = await readFile(join(import.meta.dirname, "../../infra", name), "utf8");
      return parse(text, { merge: true, logLevel: "error" }).services;
    }),
  );
  const environment = (service: string): Environment => {
    const all = Object.assign({}, ...files.map((services) => services[service].environment));
    return Object.fromEntries(
      Object.entries<string>(all).map(([name, text]) => [
        name,
        interpolated(text, variables).replaceAll("/run/tls", variables.TAPEDECK_TLS ?? ""),
      ]),
    );
  };
  const aliases: readonly string[] = files[1].gateway.networks.default.aliases;
  return { environment, aliases: aliases.map((each) => interpolated(each, variables)) };
}

const secrets = ["SERVICES_KEY", "NATS_GATEWAY_PASSWORD", "NATS_CLI_PASSWORD", "POSTGRES_PASSWORD"];

it("the command line of a team's containers reaches their gateway with TLS and a token", async () => {
  const folder = await mkdtemp(join(inject("serversFolder"), "team-tls-"));
  const authority = await testAuthority(folder, "authority");
  const { certFile, keyFile } = await authority.issue(folder, "gateway");
  const token = makeToken({ name: "admin", workspace: "acme", roles: ["admin"], lifetimeMs: 3_600_000 });
  const team = await readTeam({
    ...Object.fromEntries(secrets.map((name) => [`TAPEDECK_${name}`, "x"])),
    TAPEDECK_HOST: "localhost",
    TAPEDECK_TLS: folder,
    TAPEDECK_TLS_CA: basename(authority.certFile),
    TAPEDECK_TOKEN: token.text,
    TAPEDECK_WORKSPACE: "acme",
  });
  expect(team.aliases).toEqual(["localhost"]);
  const [gateway, cli] = [team.environment("gateway"), team.environment("cli")];
  const settings = ["TAPEDECK_AUTH", "TAPEDECK_INSECURE", "TAPEDECK_GATEWAY_HOSTS", "TAPEDECK_WORKSPACE"];
  await using stack = await startStack({
    envOf: {
      gateway: {
        ...Object.fromEntries(settings.map((name) => [name, gateway[name] ?? ""])),
        TAPEDECK_TLS_CERT: certFile,
        TAPEDECK_TLS_KEY: keyFile,
      },
    },
  });
  const nats = await connect({ servers: stack.parts.nats.url });
  await (await openTokenStore(nats)).create(token);
  await nats.close();

  const portOf = (address: string) => address.split(":").at(-1) ?? "";
  const env = {
    ...cli,
    TAPEDECK_URL: (cli.TAPEDECK_URL ?? "").replace(/:7052$/, `:${portOf(stack.http)}`),
    TAPEDECK_GRPC_PORT: (cli.TAPEDECK_GRPC_PORT ?? "").replace("7051", portOf(stack.grpc)),
  };
  const run = async (more: Environment, ...words: readonly string[]) => {
    await using running = startCli(words, { cwd: folder, env: { ...env, ...more } });
    return { code: await running.ended, said: running.stdout() + running.stderr() };
  };
  expect(await run({}, "status", "--json")).toMatchObject({ code: 0 });
  expect((await run({}, "tail", "--after", "start", "--no-follow")).code).toBe(0);
  expect(await run({ TAPEDECK_TOKEN: "" }, "status")).toMatchObject({
    code: 1,
    said: expect.stringContaining("token"),
  });
  expect(await run({ TAPEDECK_CA: "" }, "status")).toMatchObject({ code: 1, said: expect.stringContaining("trusted") });
});
