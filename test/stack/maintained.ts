import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, inject } from "vitest";
import { startTokenStack, type TokenStack } from "./token-stack.ts";
import { workspaceScenario } from "./two-workspaces.ts";

export const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];

/** A stack of two workspaces with tokens, for the tests of one file. */
export class Maintained {
  readonly #cleanup = new AsyncDisposableStack();
  harness!: TokenStack;
  cwd = "";
  /** Tokens of an admin of globex, of one of all workspaces, and of a viewer. */
  hers = "";
  everywhere = "";
  viewer = "";

  constructor() {
    beforeAll(() => this.#start());
    afterAll(() => this.#cleanup.disposeAsync());
  }

  async #start(): Promise<void> {
    this.harness = this.#cleanup.use(await startTokenStack());
    const { on, token } = this.harness;
    await on.seed(globex.events);
    await on.seed(acme.events);
    this.hers = (await token("globex", ["admin"])).text;
    this.viewer = (await token("globex", ["viewer"])).text;
    const wish = { name: "op", workspace: "acme", roles: ["admin"] satisfies Role[] };
    const made = makeToken({ ...wish, everywhere: true, lifetimeMs: 3_600_000 });
    const connection = this.#cleanup.adopt(await connect({ servers: on.stack.parts.nats.url }), (nc) => nc.close());
    await (await openTokenStore(connection)).create(made);
    this.everywhere = made.text;
    this.cwd = await mkdtemp(join(inject("serversFolder"), "maintain-"));
  }

  /** Runs a command. */
  async tapedeck(args: readonly string[], env: Record<string, string>) {
    await using cli = startCli(args, { cwd: this.cwd, env });
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  }

  /** The first line that a command prints. */
  at(command: string, context = ""): string {
    return `tapedeck: ${command} at http://${this.harness.on.stack.http}${context}\n`;
  }
}
