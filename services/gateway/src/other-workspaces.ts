import type { GatewayConfig } from "./config.ts";

/** How many workspaces a warning names. */
const maxNamed = 3;

/** How old an answer may be: everyone may request /readyz. */
const rememberedMs = 60_000;

/**
 * Warns of what a server without tokens holds and serves to nobody, because it was recorded before the setting `workspace`
 * was changed. Callers with tokens are in the workspace of their token, so there other workspaces are no sign of a change.
 */
export class OtherWorkspaces {
  readonly #config: Pick<GatewayConfig, "workspace" | "auth">;
  readonly #names: () => Promise<readonly string[]>;
  #lookedUp: { readonly at: number; readonly found: Promise<readonly string[]> } | undefined;

  /** `names`: the workspaces in which something was recorded. */
  constructor(config: Pick<GatewayConfig, "workspace" | "auth">, names: () => Promise<readonly string[]>) {
    this.#config = config;
    this.#names = names;
  }

  /** At most one sentence. Rejects while NATS is away. */
  async warnings(): Promise<readonly string[]> {
    const { auth, workspace } = this.#config;
    if (auth !== "none") return [];
    const now = performance.now();
    if (this.#lookedUp === undefined || now - this.#lookedUp.at >= rememberedMs) {
      const lookUp = { at: now, found: this.#names() };
      this.#lookedUp = lookUp;
      lookUp.found.catch(() => {
        if (this.#lookedUp === lookUp) this.#lookedUp = undefined;
      });
    }
    const others = (await this.#lookedUp.found).filter((one) => one !== workspace);
    return others.length === 0 ? [] : [sentence(others, workspace)];
  }
}

function sentence(others: readonly string[], workspace: string): string {
  const named = others.slice(0, maxNamed).map((one) => `"${one}"`);
  const more = others.length > maxNamed ? ` and ${others.length - maxNamed} more` : "";
  const where = `${named.join(", ")}${more}`;
  const move = `set \`workspace\` back, \`tapedeck export\`, set it again, \`tapedeck import\``;
  return `what was recorded in the workspace ${where} stays there, and the workspace "${workspace}" does not show it; to move it: ${move}`;
}
