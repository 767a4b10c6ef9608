import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer as httpServer } from "node:http";
import { createServer as http2Server } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { connect as connectTls, createServer as tlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { credentials, Server as GrpcServer, Metadata, ServerCredentials, status } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { type TestCertificate, testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { collect, type RunningCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// What `tapedeck run` asks a team's gateway before it starts a command.

const folder = mkdtempSync(join(tmpdir(), "run-target-"));
const path = installSkaffold(join(folder, "bin"));
const build = recordingFolder("12-skaffold-build-one-shot");
const main = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
const cleanup = new AsyncDisposableStack();
const hour = 3_600_000;
let stack: Stack;
let tokens: TokenStore;
let ours: TestCertificate;
/** "https://localhost:…", where the gateway takes gRPC. */
let to: string;

beforeAll(async () => {
  ours = await testCertificate(folder);
  const env = { TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: ours.certFile, TAPEDECK_TLS_KEY: ours.keyFile };
  stack = cleanup.use(await startStack({ env }));
  const nats = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  tokens = await openTokenStore(nats);
  to = `https://localhost:${portOf(stack.grpc)}`;
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

const portOf = (address: string) => Number(address.split(":").at(-1));

/** Whether the gateway takes no recording with this token. */
async function isRefused(text: string): Promise<boolean> {
  const client = new RecorderClient(
    `localhost:${portOf(stack.grpc)}`,
    credentials.createSsl(readFileSync(ours.certFile)),
  );
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${text}`);
  const call = client.push(metadata);
  const code = new Promise<number>((resolve) =>
    call.on("error", () => {}).on("status", (ended) => resolve(ended.code)),
  );
  call.resume();
  call.end();
  try {
    return (await code) === status.UNAUTHENTICATED;
  } finally {
    client.close();
  }
}

async function token(roles: readonly Role[] = ["recorder"], from = Date.now()) {
  const wish = { name: "dora's", workspace: "acme", roles: [...roles], developer: "dora", lifetimeMs: hour };
  const made = makeToken(wish, from);
  await tokens.create(made);
  return { text: made.text, revoke: () => tokens.revoke(made.record.id) };
}

/** A listener that ends with the tests; gives its port. */
async function listen(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanup.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A TLS proxy in front of the gateway with its own certificate; returns the path of the certificate. */
async function proxied(names?: readonly string[], from?: Date) {
  const made = await testCertificate(mkdtempSync(join(folder, "proxy-")), names, from);
  const proxy = tlsServer({ cert: made.cert, key: made.key, ALPNProtocols: ["h2"] }, (socket) => {
    const behind = { host: "127.0.0.1", port: portOf(stack.grpc), rejectUnauthorized: false, ALPNProtocols: ["h2"] };
    const gateway = connectTls(behind);
    pipeline(socket, gateway, () => {});
    pipeline(gateway, socket, () => {});
  });
  proxy.on("tlsClientError", () => {});
  return { at: `https://localhost:${await listen(proxy)}`, ca: made.certFile };
}

type Env = Readonly<Record<string, string>>;

/** The environment of the machine must not affect these tests. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(TAPEDECK_|SKAFFOLD_|VAGRANT_|GITHUB_|GITLAB_|CI|JENKINS_)/.test(name),
  ),
);

/** A laptop with correct settings except for the given ones. */
function laptop(more: Env) {
  const cwd = mkdtempSync(join(folder, "laptop-"));
  const spill = join(cwd, "spill");
  const env = {
    ...{ ...inherited, PATH: path, XDG_CONFIG_HOME: cwd, STAND_IN_RECORDING: build },
    ...{ TAPEDECK_SPILL: spill, TAPEDECK_PROJECT: "shop", TAPEDECK_URL: urlOf(to), TAPEDECK_CA: ours.certFile },
    ...more,
  };
  const start = (program: string, ...args: string[]): RunningCli =>
    collect(spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true }));
  return {
    start,
    run: (...command: string[]) => start(process.execPath, main, "run", "--", ...command),
    waiting: () => (existsSync(spill) ? readdirSync(spill) : []),
  };
}

/** These tests check the answer, however slow the machine is. */
const patient = { TAPEDECK_ANSWER_WITHIN: "30s" };

type Wrong = () => Promise<Env> | Env;
const expired = new Date(Date.now() - 2 * 366 * 24 * hour);
const good = async () => ({ TAPEDECK_TOKEN: (await token()).text });

const wrong: readonly [string, Wrong, RegExp][] = [
  [
    "a token that nobody knows",
    () => ({ TAPEDECK_TOKEN: `tdk_${"x".repeat(43)}` }),
    /localhost:\d+ reports: this token is not known: .*: provide a valid token with `tapedeck login` or TAPEDECK_TOKEN$/,
  ],
  [
    "a token that was revoked",
    async () => {
      const { text, revoke } = await token();
      await revoke();
      await until(() => isRefused(text), { message: "the gateway to know that the token is revoked" });
      return { TAPEDECK_TOKEN: text };
    },
    /reports: this token is not known: it was revoked.*: provide a valid token/,
  ],
  [
    "a token that has expired",
    async () => ({ TAPEDECK_TOKEN: (await token(["recorder"], Date.now() - 2 * hour)).text }),
    /reports: the token has expired: provide a valid token/,
  ],
  ["no token", () => ({}), /reports: a token is needed: .*: provide a valid token/],
  [
    "a token without the role",
    async () => ({ TAPEDECK_TOKEN: (await token(["viewer"])).text }),
    /reports: this needs a token with the role recorder; this one has viewer: an admin creates one with `tapedeck token create/,
  ],
  [
    "a certificate that nobody trusts",
    async () => ({ ...(await good()), TAPEDECK_URL: urlOf((await proxied()).at) }),
    /the certificate at localhost:\d+ is not trusted \(.*\): set TAPEDECK_CA to the PEM file of its authority$/,
  ],
  [
    "a certificate that has expired",
    async () => {
      const { at, ca } = await proxied(["localhost"], expired);
      return { ...(await good()), TAPEDECK_URL: urlOf(at), TAPEDECK_CA: ca };
    },
    /the certificate at localhost:\d+ has expired: renew it on the server$/,
  ],
  [
    "a certificate for another name",
    async () => {
      const { at, ca } = await proxied(["elsewhere.example"]);
      return { ...(await good()), TAPEDECK_URL: urlOf(at), TAPEDECK_CA: ca };
    },
    /the certificate at localhost:\d+ is for another name \(DNS:elsewhere.example\): use a host name that the certificate is for/,
  ],
  [
    "the port of the gateway's HTTP",
    async () => ({ ...(await good()), TAPEDECK_GRPC_PORT: String(portOf(stack.http)) }),
    /localhost:\d+ is not the gRPC port of a Tapedeck server: check the address https:\/\/localhost:\d+ and, .*TAPEDECK_GRPC_PORT$/,
  ],
  [
    "a web server without TLS",
    async () => {
      const port = await listen(httpServer((_, response) => response.end("hello")));
      return { ...(await good()), TAPEDECK_GRPC_PORT: String(port) };
    },
    /the server at localhost:\d+ does not speak TLS: check the port$/,
  ],
  [
    "another gRPC server",
    async () => {
      const server = new GrpcServer();
      cleanup.defer(() => server.forceShutdown());
      const port = await new Promise<number>((resolve, reject) =>
        server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
          error ? reject(error) : resolve(bound),
        ),
      );
      return { TAPEDECK_URL: urlOf(`127.0.0.1:${port}`) };
    },
    /is not the gRPC port of a Tapedeck server \(The server does not implement/,
  ],
  ["a time that is none", async () => ({ ...(await good()), TAPEDECK_ANSWER_WITHIN: "soon" }), /is not a duration/],
];

describe("a command whose recording would be refused runs unrecorded after one line that says why", () => {
  it.each(wrong)("%s", async (_, settings, words) => {
    const { start, run, waiting } = laptop({ ...patient, ...(await settings()) });
    const command = ["sh", "-c", "echo >&2 running as $$; env | sort; kill -TERM $$"];
    const ran = run(...command);
    expect(await ran.ended).toBe("SIGTERM");
    const [line = "", ...rest] = ran.stderr().split("\n");
    expect(line).toMatch(/^tapedeck: this command is not recorded: /);
    expect(line).toMatch(words);
    expect(line).not.toContain("tdk_x");
    // It is this very process, so its terminal, signals and exit code are the command's.
    expect(rest).toEqual([`running as ${ran.child.pid}`, ""]);
    const without = start("sh", ...command.slice(1));
    await without.ended;
    expect(ran.stdout()).toBe(without.stdout());
    expect(waiting()).toEqual([]);
  });
});

/** Accepts connections and sends nothing. */
const mute = () => listen(createServer((socket) => socket.resume().on("error", () => {})));

/** The answer of a proxy whose gateway is being restarted. */
const badGateway = async () => {
  const server = http2Server();
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 503, "content-type": "text/html" }, { endStream: true });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanup.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
};

const undecided: readonly [string, () => Promise<Env>][] = [
  ["says nothing", async () => ({ TAPEDECK_URL: urlOf(`127.0.0.1:${await mute()}`) })],
  ["says nothing, where TLS should begin", async () => ({ TAPEDECK_URL: urlOf(`https://localhost:${await mute()}`) })],
  ["is not there", async () => ({ TAPEDECK_URL: urlOf("127.0.0.1:9") })],
  ["has a host that nobody knows", async () => ({ TAPEDECK_URL: "https://tapedeck.invalid" })],
  ["is away behind its proxy", async () => ({ TAPEDECK_URL: urlOf(`127.0.0.1:${await badGateway()}`) })],
];

/** The recorded frames of the project that these laptops record. */
async function framesInLog(): Promise<readonly Buffer[]> {
  const source = sourceName({ workspace: "acme", developer: "dora", project: "shop", upstream: "skaffold" });
  const subjects = [sourceFilter(source)];
  const frames: Buffer[] = [];
  const last = await stack.log.lastMatch(subjects);
  for await (const { event } of stack.log.history(
    { afterOffset: logStart, subjects },
    last,
    new AbortController().signal,
  )) {
    if (event.channel === "v1" && event.original) frames.push(event.original.bytes);
  }
  return frames;
}

describe("a command is recorded", () => {
  it("where the gateway accepts it, and the only message says so", async () => {
    const { run } = laptop({ ...patient, ...(await good()) });
    await using ran = run("skaffold", "dev");
    const said = loadRecording(build).messages.v1.map(({ bytes }) => bytes);
    await until(async () => (await framesInLog()).length >= said.length, { message: "all that was said in the log" });
    expect(await framesInLog()).toEqual(said);
    process.kill(ran.child.pid ?? 0, "SIGINT");
    expect(await ran.ended).toBe(0);
    expect(ran.stderr()).toMatch(/^tapedeck: recording as dora\/shop, session /);
    expect(ran.stderr()).not.toContain("not recorded:");
  });

  it.each(undecided)("on the disk if the target %s", async (_, settings) => {
    const { run, waiting } = laptop(await settings());
    const ran = run("skaffold", "build");
    expect(await ran.ended).toBe(0);
    expect(ran.stdout()).toContain('"args":["build"]');
    expect(ran.stderr()).not.toContain("this command is not recorded");
    expect(ran.stderr()).toContain("the recording waits in");
    expect(waiting()).toHaveLength(1);
  });
});
