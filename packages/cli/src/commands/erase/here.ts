import { plural } from "@tapedeck/client/lanes/format";
import {
  beginDeveloperErasure,
  beginErasure,
  findSource,
  followDeveloperErasure,
  followErasure,
} from "@tapedeck/ingest/for-cli/maintain";
import { sessionExports } from "@tapedeck/shared/audit/session-exports";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { DeveloperErasure } from "@tapedeck/shared/log/erasures/developer-erasures";
import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { logNames } from "@tapedeck/shared/log/workspace-logs";
import { workspaceSetting } from "@tapedeck/shared/service/common-settings";
import { demoWorkspace, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import type { NatsConnection } from "nats";
import { CommandError } from "../../command-error.ts";
import { confirm } from "../../confirm.ts";
import { shortSource } from "../../display/source-name.ts";
import { userHere } from "../../maintain/audit-here.ts";
import { dialRunning, findHere } from "../../maintain/here.ts";
import type { Erasing, ErasingDeveloper } from "../../maintain/remote.ts";
import type { EraseOptions } from "./options.ts";
import { showErasure } from "./show.ts";
import { showDeveloperErasure } from "./show-developer.ts";

/** Has the Tapedeck that runs on a data folder erase a session. */
export async function eraseHere(session: string, options: EraseOptions): Promise<void> {
  const { data, yes } = options;
  await using machine = await dialRunning(data);
  const { nats } = machine;
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  await using log = await logWith(nats, session, stop.signal);
  const deps = { nats, workspace: log.workspace, log, signal: stop.signal };
  const ask = async (source: string) => {
    if (!yes)
      await confirm(`Erase session ${session} of ${shortSource(source)}? This can't be undone. [y/N] `, "erased");
  };
  const request = { session, ...userHere() };
  const erasure = await beginErasure(request, deps, ask).catch((error: unknown) => {
    if (error instanceof TapedeckError) throw new CommandError(`${error.message}.`, { cause: error });
    throw error;
  });
  await showErasure(withExports(followErasure(erasure, deps), nats), { ...options, session, signal: stop.signal });
}

/** Has the Tapedeck that runs on a data folder erase a developer of its workspace. */
export async function eraseDeveloperHere(developer: string, options: EraseOptions): Promise<void> {
  const here = await findHere(options.data);
  const workspace = here.running?.mode === "demo" ? demoWorkspace : workspaceSetting(here.settings());
  await using machine = await dialRunning(options.data);
  const { nats } = machine;
  await using log = await openLog(nats, { workspace, create: false, syncKnown: true });
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const deps = { nats, workspace, log, signal: stop.signal };
  const place = { workspace, developer };
  const all = await (await openTokenStore(nats)).list();
  const tokens = all.filter((token) => token.workspace === workspace && token.developer === developer);
  const ask = async (sessions: number) => {
    if (options.yes) return;
    await confirm(
      `Erase ${plural(sessions, "session")} of ${workspace}/${developer}? This can't be undone. [y/N] `,
      "erased",
    );
  };
  const request = { ...place, tokens: tokens.map(({ id }) => id), by: undefined, ...userHere() };
  await beginDeveloperErasure(request, deps, ask).catch((error: unknown) => {
    if (error instanceof TapedeckError) throw new CommandError(`${error.message}.`, { cause: error });
    throw error;
  });
  const erasing = withTokens(followDeveloperErasure(place, deps), tokens);
  await showDeveloperErasure(erasing, { ...options, developer, signal: stop.signal });
}

/** The log that has the session, or had it: the first one where no log has. @throws CommandError where there is no log */
async function logWith(nats: NatsConnection, session: string, signal: AbortSignal) {
  const known = await new ErasureStore(nats).of(session);
  const names = known === undefined ? await logNames(nats) : [sourceParts(known.source as SourceName).workspace];
  for (const workspace of names) {
    const log = await openLog(nats, { workspace, create: false, syncKnown: true });
    const isThere = (await findSource(session, { nats, workspace, log, signal })) !== undefined;
    if (isThere || workspace === names.at(-1)) return { ...log, workspace };
    await log[Symbol.asyncDispose]();
  }
  throw new CommandError("nothing is recorded here.");
}

async function* withTokens(
  erasing: AsyncIterable<DeveloperErasure>,
  tokens: NonNullable<ErasingDeveloper["tokens"]>,
): AsyncGenerator<ErasingDeveloper, void> {
  for await (const { state, sessions, erased, waitsFor, exports } of erasing) {
    yield { state, sessions, erased, waitsFor, exports, tokens };
  }
}

/** With who has exported the session before, where the user of NATS here may read the audit log. */
async function* withExports(erasing: AsyncIterable<Erasure>, nats: NatsConnection): AsyncGenerator<Erasing, void> {
  for await (const now of erasing) {
    if (now.state !== "done") {
      yield now;
      continue;
    }
    const of = { workspace: now.source.split("/")[0], session: now.session };
    const exports = await openAuditStore(nats)
      .then((store) => sessionExports(store, of))
      .catch(() => undefined);
    yield { ...now, exports };
  }
}
