import type {
  RetentionResponse,
  SetRetentionRequest,
  SetRetentionRequest_Period,
} from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { WatchedWorkspaces } from "@tapedeck/shared/log/workspaces/watch-workspaces";
import { type Retention, WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import { isNamePart } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import type { MaintenanceAudit } from "../maintain/maintenance-audit.ts";
import { notReady } from "../push-errors.ts";

/** In seconds; undefined: for ever. */
export type Kept = { readonly facts: number | undefined; readonly text: number | undefined };

export type RetentionsOptions = {
  /** That of the settings. */
  readonly defaults: Kept;
  /** Undefined while NATS is unavailable at the start. */
  readonly stores: () => { readonly nats: NatsConnection; readonly workspaces: WatchedWorkspaces } | undefined;
  readonly audit: MaintenanceAudit["retention"];
};

/** How long what is recorded in each workspace is kept: as the settings say, unless the workspace has its own. */
export class Retentions {
  readonly #options: RetentionsOptions;

  constructor(options: RetentionsOptions) {
    this.#options = options;
  }

  of(workspace: string): Kept {
    return this.#with(this.#options.stores()?.workspaces.retentionOf(workspace) ?? {});
  }

  /** What is stored, where `of` gives what was heard. Rejects when NATS can't be asked. */
  async stored(workspace: string): Promise<Kept> {
    return this.#with(await new WorkspaceStore(this.#opened().nats).retentionOf(workspace));
  }

  /** tapedeck.v1.Maintain/Retention. */
  *all(): Generator<RetentionResponse, void> {
    const { workspaces } = this.#opened();
    yield responseOf("", this.#with({}));
    for (const [workspace, own] of workspaces.retentions()) yield responseOf(workspace, this.#with(own));
  }

  /** tapedeck.v1.Maintain/SetRetention. */
  async *set(request: SetRetentionRequest): AsyncGenerator<RetentionResponse, void> {
    const { workspace, who, by } = request;
    if (!isNamePart(workspace)) throw invalidArgument("no workspace", "workspace");
    const kind = callerKind.safeParse(request.kind).data;
    if (kind === undefined) throw invalidArgument("no kind of caller", "kind");
    const { nats } = this.#opened();
    const store = new WorkspaceStore(nats);
    const changed = await store
      .retentionOf(workspace)
      .then(async (before) => {
        const facts = secondsOf(request.facts, before.facts);
        const text = secondsOf(request.text, before.text);
        const after: Retention = { ...(facts !== undefined && { facts }), ...(text !== undefined && { text }) };
        await store.putRetention(workspace, after);
        return after;
      })
      .catch((cause: unknown) => {
        throw notReady("the retention can't be changed now", cause);
      });
    const kept = this.#with(changed);
    const about = { facts: wordsOf(kept.facts), text: wordsOf(kept.text) };
    await this.#options.audit(workspace, { who, kind, ...(by !== "" && { by }) }, about);
    yield responseOf(workspace, kept);
  }

  #with({ facts, text }: Retention): Kept {
    const { defaults } = this.#options;
    const kept = (own: number | null | undefined, otherwise: number | undefined) =>
      own === undefined ? otherwise : (own ?? undefined);
    return { facts: kept(facts, defaults.facts), text: kept(text, defaults.text) };
  }

  #opened() {
    const opened = this.#options.stores();
    if (opened === undefined) throw notReady("the log is unavailable");
    return opened;
  }
}

/** Null: for ever. Undefined: as the settings say. */
function secondsOf(
  period: SetRetentionRequest_Period | undefined,
  before: number | null | undefined,
): number | null | undefined {
  const kept = period?.kept;
  if (kept === undefined) return before;
  if (kept.$case === "seconds") return Number(kept.value);
  return kept.$case === "forever" ? null : undefined;
}

function responseOf(workspace: string, { facts, text }: Kept): RetentionResponse {
  const seconds = (value: number | undefined) => (value === undefined ? undefined : BigInt(value));
  return { workspace, facts_seconds: seconds(facts), text_seconds: seconds(text) };
}

function wordsOf(seconds: number | undefined): string {
  return seconds === undefined ? "for ever" : `${seconds} s`;
}
