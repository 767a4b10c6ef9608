import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { sourcesFilter } from "@tapedeck/shared/log/subjects";
import { namePart } from "@tapedeck/shared/source";
import type { Endpoint, GatewayConfig } from "./config.ts";

export type UnrecordedEndpointsOptions = {
  readonly config: Pick<GatewayConfig, "endpoints" | "workspace" | "auth">;
  /** @throws TapedeckError not_ready */
  readonly log: () => Pick<LogReader, "lastMatch">;
};

/** How old an answer may be. */
const rememberedMs = 5_000;

/** The endpoints whose source has not been recorded. Their clients wait, for ever if its name is mistyped. */
export class UnrecordedEndpoints {
  readonly #log: UnrecordedEndpointsOptions["log"];
  #lookedUp: { readonly at: number; readonly done: Promise<void> } | undefined;
  /** With the subjects of its source. An endpoint that was found recorded once is not looked up again. */
  readonly #pending: Map<Endpoint, string>;

  constructor({ config, log }: UnrecordedEndpointsOptions) {
    this.#log = log;
    this.#pending = new Map(config.endpoints.map((endpoint) => [endpoint, subjectsOf(endpoint, config)]));
  }

  /** One sentence for each. @throws TapedeckError not_ready while the log is away */
  async warnings(): Promise<readonly string[]> {
    await this.#lookUpAll();
    return [...this.#pending.keys()].map(({ source, grpc, http }) => {
      const addresses = [grpc, http].flatMap((address) => address ?? []).join(" and ");
      return `the endpoint at ${addresses} serves ${source}, which has no recordings yet: its clients wait for the first session, or the name is wrong`;
    });
  }

  /** Everyone may request /readyz, so the log is asked only once in a while. */
  async #lookUpAll(): Promise<void> {
    const now = performance.now();
    if (this.#lookedUp === undefined || now - this.#lookedUp.at >= rememberedMs) {
      const lookUps = [...this.#pending].map(([endpoint, subjects]) => this.#lookUp(endpoint, subjects));
      this.#lookedUp = { at: now, done: Promise.all(lookUps).then(() => {}) };
    }
    await this.#lookedUp.done;
  }

  async #lookUp(endpoint: Endpoint, subjects: string): Promise<void> {
    if (mayHoldEvents(logStart, await this.#log().lastMatch([subjects]))) this.#pending.delete(endpoint);
  }
}

/** A name without a workspace means a source of the caller's workspace, which a token names. */
function subjectsOf({ source, open }: Endpoint, config: UnrecordedEndpointsOptions["config"]): string {
  const parts = source.split("/").map(namePart);
  const isOwn = config.auth === "none" || open !== undefined;
  const own = isOwn ? namePart(config.workspace) : undefined;
  const [workspace, developer, project, upstream] = parts.length === 4 ? parts : [own, ...parts];
  return sourcesFilter({ workspace, developer, project, upstream });
}
