import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer as http2Server } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { connect as connectTls, createServer as tlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { credentials, Metadata, status } from "@grpc/grpc-js";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { type TestCertificate, testCertificate } from "@tapedeck/shared/testing/certificates";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { collect, type RunningCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

const build = recordingFolder("12-skaffold-build-one-shot");
const main = fileURLToPath(new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url));
const hour = 3_600_000;

export const portOf = (address: string) => Number(address.split(":").at(-1));

export type Env = Readonly<Record<string, string>>;

/** The environment of the machine must not affect these tests. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(TAPEDECK_|SKAFFOLD_|VAGRANT_|GITHUB_|GITLAB_|CI|JENKINS_)/.test(name),
  ),
);

/** A team's gateway with TLS and tokens, and laptops whose `tapedeck run` checks with it before a command. */
export class Target {
  readonly #cleanup = new AsyncDisposableStack();
  readonly #folder = mkdtempSync(join(tmpdir(), "run-target-"));
  readonly #path = installSkaffold(join(this.#folder, "bin"));
  #running: { readonly stack: Stack; readonly tokens: TokenStore; readonly ours: TestCertificate } | undefined;

  constructor() {
    beforeAll(async () => {
      const ours = await testCertificate(this.#folder);
      const env = { TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: ours.certFile, TAPEDECK_TLS_KEY: ours.keyFile };
      const stack = this.#cleanup.use(await startStack({ env }));
      const nats = this.#cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
      this.#running = { stack, tokens: await openTokenStore(nats), ours };
    });
    afterAll(async () => {
      await this.#cleanup.disposeAsync();
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  get #now() {
    if (this.#running === undefined) throw new Error("it does not run yet");
    return this.#running;
  }

  get stack(): Stack {
    return this.#now.stack;
  }

  /** The gateway's gRPC address, "https://localhost:…". */
  get to(): string {
    return `https://localhost:${portOf(this.stack.grpc)}`;
  }

  /** Calls `end` after the tests. */
  defer(end: () => void): void {
    this.#cleanup.defer(end);
  }

  /** Whether the gateway refuses recordings with this token. */
  async isRefused(text: string): Promise<boolean> {
    const client = new RecorderClient(
      `localhost:${portOf(this.stack.grpc)}`,
      credentials.createSsl(readFileSync(this.#now.ours.certFile)),
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

  async token(roles: readonly Role[] = ["recorder"], from = Date.now()) {
    const wish = { name: "dora's", workspace: "acme", roles: [...roles], developer: "dora", lifetimeMs: hour };
    const made = makeToken(wish, from);
    await this.#now.tokens.create(made);
    return { text: made.text, revoke: () => this.#now.tokens.revoke(made.record.id) };
  }

  /** The settings of a laptop with an accepted token. */
  async good(): Promise<Env> {
    return { TAPEDECK_TOKEN: (await this.token()).text };
  }

  /** Starts a listener that ends with the tests; returns its port. */
  async listen(server: Server): Promise<number> {
    await once(server.listen(0, "127.0.0.1"), "listening");
    this.#cleanup.defer(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  /** A TLS proxy in front of the gateway with its own certificate; returns the path of the certificate. */
  async proxied(names?: readonly string[], from?: Date) {
    const made = await testCertificate(mkdtempSync(join(this.#folder, "proxy-")), names, from);
    const proxy = tlsServer({ cert: made.cert, key: made.key, ALPNProtocols: ["h2"] }, (socket) => {
      const behind = {
        host: "127.0.0.1",
        port: portOf(this.stack.grpc),
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
      };
      const gateway = connectTls(behind);
      pipeline(socket, gateway, () => {});
      pipeline(gateway, socket, () => {});
    });
    proxy.on("tlsClientError", () => {});
    return { at: `https://localhost:${await this.listen(proxy)}`, ca: made.certFile };
  }

  /** Accepts connections and sends nothing. */
  mute(): Promise<number> {
    return this.listen(createServer((socket) => socket.resume().on("error", () => {})));
  }

  /** The answer of a proxy whose gateway is being restarted. */
  async badGateway(): Promise<number> {
    const server = http2Server();
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 503, "content-type": "text/html" }, { endStream: true });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    this.#cleanup.defer(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  /** A laptop with correct settings except for the given ones. */
  laptop(more: Env) {
    const cwd = mkdtempSync(join(this.#folder, "laptop-"));
    const spill = join(cwd, "spill");
    const env = {
      ...inherited,
      PATH: this.#path,
      XDG_CONFIG_HOME: cwd,
      STAND_IN_RECORDING: build,
      TAPEDECK_SPILL: spill,
      TAPEDECK_PROJECT: "shop",
      TAPEDECK_URL: urlOf(this.to),
      TAPEDECK_CA: this.#now.ours.certFile,
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
}
