import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import type { FakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { UserIntentRequest } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { type RunningCli, startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll } from "vitest";
import { type Stack, startStack } from "./stack.ts";

export const build = recordingFolder("12-skaffold-build-one-shot");
export const control = recordingFolder("05-control-api-auto-off");
/** A team's Tapedeck with TLS and tokens, and laptops that record to it; for the tests of one file. */
export class Team {
  readonly #cleanup = new AsyncDisposableStack();
  readonly #folder = mkdtempSync(join(tmpdir(), "remote-record-"));
  readonly #path = installSkaffold(join(this.#folder, "bin"));
  #running: { readonly stack: Stack; readonly tokens: TokenStore; readonly caFile: string } | undefined;

  constructor() {
    beforeAll(async () => {
      const { certFile, keyFile } = await testCertificate(this.#folder);
      const env = { TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: keyFile };
      const stack = this.#cleanup.use(await startStack({ env }));
      const nats = this.#cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
      this.#running = { stack, tokens: await openTokenStore(nats), caFile: certFile };
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

  get to(): string {
    return `https://localhost:${this.stack.grpc.split(":").at(-1)}`;
  }

  async token(roles: readonly Role[], developer = "dora", workspace = "acme") {
    const made = makeToken({ name: `${developer}'s`, workspace, roles: [...roles], developer, lifetimeMs: 3_600_000 });
    await this.#now.tokens.create(made);
    return { text: made.text, revoke: () => this.#now.tokens.revoke(made.record.id) };
  }

  /** A laptop, as far as a process can stand in for one. */
  laptop(bearer: string) {
    const cwd = mkdtempSync(join(this.#folder, "laptop-"));
    const spill = join(cwd, "spill");
    const env = {
      PATH: this.#path,
      TAPEDECK_SPILL: spill,
      TAPEDECK_URL: urlOf(this.to),
      TAPEDECK_CA: this.#now.caFile,
      TAPEDECK_TOKEN: bearer,
      STAND_IN_RECORDING: build,
    };
    const cli = (args: readonly string[], more = {}) => startCli(args, { cwd, env: { ...env, ...more } });
    const record = (fake: FakeSkaffold, more = {}) =>
      cli(["record", "--upstream", "skaffold", "--address", fake.address, "--project", "blog"], more);
    const run = (...more: string[]) => cli(["run", "--project", "shop", ...more, "--", "skaffold", "build"]);
    const runUnasked = () =>
      cli(["run", "--project", "shop", "--", "skaffold", "build"], { TAPEDECK_ANSWER_WITHIN: "0s" });
    return {
      spill,
      cli,
      run,
      runUnasked,
      record,
    };
  }

  async events(developer: string, project: string): Promise<readonly Event[]> {
    const source = sourceName({ workspace: "acme", developer, project, upstream: "skaffold" });
    const subjects = [sourceFilter(source)];
    const found: Event[] = [];
    const over = new AbortController();
    const { reader } = await this.stack.logs.of("acme");
    const last = await reader.lastMatch(subjects);
    for await (const { event } of reader.history({ afterOffset: logStart, subjects }, last, over.signal)) {
      found.push(event);
    }
    return found;
  }

  async getJson<Answer>(path: string, bearer: string): Promise<Answer> {
    const port = Number(this.stack.http.split(":").at(-1));
    const headers = { authorization: `Bearer ${bearer}` };
    const text = await new Promise<string>((resolve, reject) => {
      const call = request(
        { host: "localhost", port, path, headers, ca: readFileSync(this.#now.caFile) },
        async (response) => {
          resolve((await Array.fromAsync(response)).join(""));
        },
      );
      call.on("error", reject).end();
    });
    return JSON.parse(text) as Answer;
  }

  /** Sends a control call as an IDE does, unaware of taps. */
  execute(bearer: string, source: string): Promise<{ readonly code: number; readonly details: string }> {
    const client = new Client(this.to.replace("https://", ""), credentials.createSsl(readFileSync(this.#now.caFile)));
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${bearer}`);
    metadata.set("tapedeck-source", source);
    const asIs = (bytes: Buffer) => bytes;
    const intent = Buffer.from(
      UserIntentRequest.encode({ intent: { build: true, sync: false, deploy: false, devloop: false } }).finish(),
    );
    return new Promise((resolve) => {
      const method = "/proto.v2.SkaffoldV2Service/Execute";
      client.makeUnaryRequest(method, asIs, asIs, intent, metadata, (error: ServiceError | null) => {
        client.close();
        resolve({ code: error?.code ?? status.OK, details: error?.details ?? "" });
      });
    });
  }
}

export const framesOf = (all: readonly Event[], channel: "v1" | "v2") =>
  all.flatMap(({ channel: of, part, original }) => (of === channel && part === 0 && original ? [original.bytes] : []));
export const saidIn = (recording: string, channel: "v1" | "v2") =>
  loadRecording(recording).messages[channel].map(({ bytes }) => bytes);

export const reports = (cli: RunningCli, text: string) =>
  until(() => cli.stdout().includes(text), { message: `"${text}" to be printed` });
