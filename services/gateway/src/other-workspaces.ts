import { jetstreamManager } from "@nats-io/jetstream";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { infoOfLeader } from "@tapedeck/shared/log/cluster/leader-info";
import { sourceOfSubject, sourcesFilter, streamName } from "@tapedeck/shared/log/subjects";
import { sourceParts } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import type { GatewayConfig } from "./config.ts";

/** The subjects of what the log says of sessions, in all workspaces. */
const everySession = `${sourcesFilter({ workspace: undefined, developer: undefined, project: undefined, upstream: undefined }).slice(0, -1)}${ownChannel}.session`;

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
  readonly #connection: () => NatsConnection;
  #lookedUp: { readonly at: number; readonly found: Promise<readonly string[]> } | undefined;

  /** @throws TapedeckError not_ready where the connection does */
  constructor(config: Pick<GatewayConfig, "workspace" | "auth">, connection: () => NatsConnection) {
    this.#config = config;
    this.#connection = connection;
  }

  /** At most one sentence. Rejects while the log is away. */
  async warnings(): Promise<readonly string[]> {
    const { auth, workspace } = this.#config;
    if (auth !== "none") return [];
    const now = performance.now();
    if (this.#lookedUp === undefined || now - this.#lookedUp.at >= rememberedMs) {
      const lookUp = { at: now, found: this.#findAll() };
      this.#lookedUp = lookUp;
      lookUp.found.catch(() => {
        if (this.#lookedUp === lookUp) this.#lookedUp = undefined;
      });
    }
    const others = (await this.#lookedUp.found).filter((one) => one !== workspace);
    return others.length === 0 ? [] : [sentence(others, workspace)];
  }

  async #findAll(): Promise<readonly string[]> {
    return [...new Set(await workspacesIn(this.#connection()))].toSorted();
  }
}

async function workspacesIn(connection: NatsConnection): Promise<readonly string[]> {
  const jsm = await jetstreamManager(connection, { timeout: 2_000, checkAPI: false });
  const { state } = await infoOfLeader(jsm, streamName, { subjects_filter: everySession });
  const sources = Object.keys(state.subjects ?? {}).flatMap((subject) => sourceOfSubject(subject) ?? []);
  return sources.map((source) => sourceParts(source).workspace);
}

function sentence(others: readonly string[], workspace: string): string {
  const named = others.slice(0, maxNamed).map((one) => `"${one}"`);
  const more = others.length > maxNamed ? ` and ${others.length - maxNamed} more` : "";
  const where = `${named.join(", ")}${more}`;
  const move = `set \`workspace\` back, \`tapedeck export\`, set it again, \`tapedeck import\``;
  return `what was recorded in the workspace ${where} stays there, and the workspace "${workspace}" does not show it; to move it: ${move}`;
}
