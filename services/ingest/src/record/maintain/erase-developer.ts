import type { EraseDeveloperRequest, EraseDeveloperResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import {
  type Developer,
  type DeveloperErasure,
  DeveloperErasureStore,
  developerKey,
} from "@tapedeck/shared/log/erasures/developer-erasures";
import { isNamePart } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { notReady } from "../push-errors.ts";
import type { Stores } from "../recorder-options.ts";
import { sourcesOfDeveloper } from "./developer-sources.ts";
import { storeToErase } from "./erase-call.ts";
import type { EraseDeps } from "./erase-session.ts";

export type EraseDeveloperRequested = Developer & Pick<DeveloperErasure, "tokens" | "who" | "kind" | "by">;

/**
 * Begins to erase everything of a developer in a workspace, which an ingest then finishes by itself. A repeated call returns
 * the erasure that is under way or has ended, unless the log has something of the developer again. `confirm` is called
 * before anything is done.
 * @throws TapedeckError not_found; invalid_argument while one of the developer's sessions goes on. Rejects when the log is
 *   unavailable
 */
export async function beginDeveloperErasure(
  { workspace, developer, tokens, who, kind, by }: EraseDeveloperRequested,
  deps: EraseDeps,
  confirm: (sessions: number) => Promise<void> = async () => {},
): Promise<DeveloperErasure> {
  const store = new DeveloperErasureStore(deps.nats);
  const key = developerKey({ workspace, developer });
  const known = await store.of(key);
  if (known?.state === "removing") return known;
  const { sources, sessions } = await sourcesOfDeveloper({ workspace, developer }, deps);
  if (sources.size === 0 && known !== undefined) return known;
  if (sources.size === 0) {
    throw new TapedeckError("not_found", `nothing is recorded of the developer "${developer}"`, { field: "developer" });
  }
  const running = sessions.find(({ goesOn }) => goesOn);
  if (running !== undefined) {
    const { source, session } = running;
    throw invalidArgument(`${source} is being recorded (session ${session}): end it first`, "developer");
  }
  await confirm(sessions.length);
  return await store.begin(key, {
    workspace,
    developer,
    tokens,
    sessions: sessions.length,
    erased: 0,
    state: "removing",
    began: new Date().toISOString(),
    who,
    kind,
    by,
  });
}

/** How often the progress is read. */
const followMs = 200;

/** Yields the progress of an erasure when it has changed, and at its end. Rejects when the log is unavailable. */
export async function* followDeveloperErasure(
  developer: Developer,
  { nats, signal }: Pick<EraseDeps, "nats" | "signal">,
): AsyncGenerator<DeveloperErasure, void> {
  const store = new DeveloperErasureStore(nats);
  const key = developerKey(developer);
  let last = "";
  while (!signal.aborted) {
    const erasure = await store.of(key);
    if (erasure === undefined) return;
    const now = JSON.stringify(erasure);
    if (now !== last) yield erasure;
    last = now;
    if (erasure.state === "done") return;
    await delay(followMs, signal);
  }
}

/** tapedeck.v1.Maintain/EraseDeveloper: begins the erasure, or finds the one that has begun, and follows it to its end. */
export async function* eraseDeveloperCall(
  { workspace, developer, tokens, who, kind: kindName, by }: EraseDeveloperRequest,
  stores: Stores | undefined,
  signal: AbortSignal,
): AsyncGenerator<EraseDeveloperResponse, void> {
  if (!isNamePart(workspace)) throw invalidArgument("no workspace", "workspace");
  if (!isNamePart(developer)) throw invalidArgument("no developer", "developer");
  const kind = callerKind.safeParse(kindName).data;
  if (kind === undefined) throw invalidArgument("no kind of caller", "kind");
  const deps = { ...(await storeToErase(workspace, stores)), signal };
  const request = { workspace, developer, tokens, who, kind, by: by === "" ? undefined : by };
  await beginDeveloperErasure(request, deps).catch((cause: unknown) => {
    throw cause instanceof TapedeckError ? cause : notReady("the log does not answer", cause);
  });
  for await (const { state, sessions, erased, waitsFor = "", exports = [] } of followDeveloperErasure(request, deps)) {
    yield { state, sessions: BigInt(sessions), erased: BigInt(erased), waits_for: waitsFor, exports };
  }
}
