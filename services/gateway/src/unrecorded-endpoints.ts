import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { sourcesFilter } from "@tapedeck/shared/log/subjects";
import { namePart } from "@tapedeck/shared/source";
import type { Endpoint, GatewayConfig } from "./config.ts";
import type { LogLink } from "./log-link.ts";

export type UnrecordedEndpointsOptions = {
  readonly config: Pick<GatewayConfig, "endpoints" | "workspace" | "auth">;
  readonly logs: LogLink["logs"];
};

/** How old an answer may be. */
const rememberedMs = 5_000;

/** The endpoints whose source has not been recorded. Their clients wait, for ever if its name is mistyped. */
export class UnrecordedEndpoints {
  readonly #logs: UnrecordedEndpointsOptions["logs"];
  #lookedUp: { readonly at: number; readonly done: Promise<void> } | undefined;
  /** An endpoint that was found recorded once is not looked up again. */
  readonly #pending: Map<Endpoint, SourceFilter>;

  constructor({ config, logs }: UnrecordedEndpointsOptions) {
    this.#logs = logs;
    this.#pending = new Map(config.endpoints.map((endpoint) => [endpoint, placeOf(endpoint, config)]));
  }

  /** One sentence for each. @throws TapedeckError not_ready while a log is away */
  async warnings(): Promise<readonly string[]> {
    await this.#lookUpAll();
    return [...this.#pending.keys()].map(({ source, grpc, http }) => {
      const addresses = [grpc, http].flatMap((address) => address ?? []).join(" and ");
      return `the endpoint at ${addresses} serves ${source}, which has no recordings yet: its clients wait for the first session, or the name is wrong`;
    });
  }

  /** Everyone may request /readyz, so the logs are asked only once in a while. */
  async #lookUpAll(): Promise<void> {
    const now = performance.now();
    if (this.#lookedUp === undefined || now - this.#lookedUp.at >= rememberedMs) {
      this.#lookedUp = { at: now, done: this.#lookUp() };
    }
    await this.#lookedUp.done;
  }

  async #lookUp(): Promise<void> {
    if (this.#pending.size === 0) return;
    const names = await this.#logs().names();
    for (const [endpoint, place] of this.#pending) {
      for (const name of place.workspace === undefined ? names : names.filter((one) => one === place.workspace)) {
        if (await this.#isRecorded(name, place)) this.#pending.delete(endpoint);
        if (!this.#pending.has(endpoint)) break;
      }
    }
  }

  async #isRecorded(workspace: string, place: SourceFilter): Promise<boolean> {
    const { reader } = await this.#logs().of(workspace);
    return mayHoldEvents(logStart, await reader.lastMatch([sourcesFilter({ ...place, workspace })]));
  }
}

/** Parts of a source's name; undefined: any. */
type SourceFilter = Parameters<typeof sourcesFilter>[0];

/** A name without a workspace means a source of the caller's workspace, which a token names. */
function placeOf({ source, open }: Endpoint, config: UnrecordedEndpointsOptions["config"]): SourceFilter {
  const parts = source.split("/").map(namePart);
  const isOwn = config.auth === "none" || open !== undefined;
  const own = isOwn ? namePart(config.workspace) : undefined;
  const [workspace, developer, project, upstream] = parts.length === 4 ? parts : [own, ...parts];
  return { workspace, developer, project, upstream };
}
