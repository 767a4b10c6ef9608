import type { EarlierExport } from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import type { SessionExport } from "@tapedeck/shared/audit/session-exports";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import type { TokenRecord } from "@tapedeck/shared/tokens/token";
import type { CallContext } from "../../call-context.ts";
import type { MaintainClient } from "../../maintain-client.ts";

export type DeveloperErasureDeps = {
  readonly services: Pick<MaintainClient, "eraseDeveloper">;
  readonly tokens: () => Promise<readonly TokenRecord[]>;
};

export type EraseDeveloperProgress = {
  readonly developer: string;
  readonly state: "removing" | "done";
  /** How many sessions there are, and how many of them are erased. */
  readonly sessions: number;
  readonly erased: number;
  /** What keeps it from its end; empty: nothing does. */
  readonly waitsFor: string;
  /** At its end: who has taken sessions away before, and the tokens that still have the name. */
  readonly exports?: readonly SessionExport[];
  readonly tokens?: readonly Pick<TokenRecord, "id" | "name">[];
};

/** Starts the erasure of a developer of the caller's workspace, and yields its progress. */
export async function beginDeveloperErasure(
  { services, tokens }: DeveloperErasureDeps,
  developer: string,
  { workspace, who, kind, token = "", signal }: CallContext,
): Promise<AsyncIterable<EraseDeveloperProgress>> {
  if (!isNamePart(developer)) throw invalidArgument(`a developer's name is ${nameForm}`, "developer");
  const own = await ownTokens(tokens, { workspace, developer });
  const ids = own.map(({ id }) => id);
  const request = { workspace, developer, tokens: ids, who, kind, by: token };
  const responses = services.eraseDeveloper(request, signal)[Symbol.asyncIterator]();
  const first = await responses.next();
  return (async function* (): AsyncGenerator<EraseDeveloperProgress, void> {
    try {
      for (let next = first; next.done !== true; next = await responses.next()) {
        const { sessions, erased, waits_for: waitsFor, exports, state } = next.value;
        const far = { developer, sessions: Number(sessions), erased: Number(erased), waitsFor };
        if (state !== "done") yield { ...far, state: "removing" };
        else yield { ...far, state: "done", exports: exports.map(exportOf), tokens: own };
      }
    } finally {
      await responses.return?.();
    }
  })();
}

function exportOf({ time, who, kind }: EarlierExport): SessionExport {
  return { time, who, kind: callerKind.parse(kind) };
}

async function ownTokens(
  tokens: DeveloperErasureDeps["tokens"],
  place: { readonly workspace: string; readonly developer: string },
): Promise<readonly Pick<TokenRecord, "id" | "name">[]> {
  const all = await tokens().catch((cause: unknown) => {
    throw new TapedeckError("not_ready", "the tokens can't be read now: try again in a moment", {}, { cause });
  });
  return all
    .filter(({ workspace, developer }) => workspace === place.workspace && developer === place.developer)
    .map(({ id, name }) => ({ id, name }));
}
