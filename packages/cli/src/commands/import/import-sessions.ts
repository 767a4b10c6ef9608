import { Client } from "@grpc/grpc-js";
import { plural } from "@tapedeck/client/lanes/format";
import { parseSourceName, sourceParts } from "@tapedeck/shared/source";
import { grpcLink, linkOptions } from "@tapedeck/tap/push/link";
import { CommandError } from "../../command-error.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { grpcEndpoint } from "../../grpc-endpoint.ts";
import { grpcTarget } from "../../grpc-target.ts";
import { Progress, type ProgressTo } from "../../progress.ts";
import {
  type FiledSession,
  type SessionFile,
  SessionFileReader,
  verifySessionFile,
} from "../../session-file/session-file.ts";
import type { ImportOptions } from "./options.ts";
import { type Pushed, pushSession } from "./push-session.ts";

type Verified = SessionFile & { readonly file: string };

/** Session files, all of which are read to their ends before anything of them is recorded. */
export async function importSessionFiles(
  files: readonly string[],
  options: ImportOptions,
  progressTo: ProgressTo,
): Promise<void> {
  const target = grpcTarget(options.url);
  const verified: Verified[] = [];
  for (const file of files) verified.push({ file, ...(await checked(file, progressTo)) });
  const { address, credentials, metadata } = grpcEndpoint(target);
  const client = new Client(address, credentials, linkOptions);
  using _closed = { [Symbol.dispose]: () => client.close() };
  const link = grpcLink(client, metadata);
  for (const one of verified) {
    await using reader = new SessionFileReader(one.file);
    const total = one.sessions.reduce((sum, { events }) => sum + events, 0);
    let before = 0;
    // One for all sessions: many short ones take long, too.
    using progress = new Progress({ what: `importing ${one.file}`, unit: "events", total, ...progressTo });
    for (const session of one.sessions) {
      const onPushed = (events: number) => progress.reached(before + events);
      const pushed = await pushSession({ target, from: { link, reader }, ...place(one, options), session, onPushed });
      before += session.events;
      // The bar makes room for the line, and comes back with the next session.
      progress[Symbol.dispose]();
      printResult(session, one, pushed, options);
    }
  }
}

async function checked(file: string, progressTo: ProgressTo): Promise<SessionFile> {
  using progress = new Progress({ what: `checking ${file}`, unit: "events", ...progressTo });
  return await verifySessionFile(file, (events) => progress.reached(events));
}

/** Uses the recorded names unless others are given: the session does not belong to the user who imports it. */
function place({ header }: Verified, { developer, project, label = {} }: ImportOptions) {
  const source = parseSourceName(header.source);
  if (source === undefined) throw new CommandError(`${header.source} is not a source.`);
  const parts = sourceParts(source);
  const hello = {
    developer: developer ?? parts.developer,
    project: project ?? parts.project,
    upstream: header.upstream,
    labels: { ...label },
  };
  return { header, hello };
}

function printResult(
  { session, events }: FiledSession,
  { header }: Verified,
  { source, session: there, added }: Pushed,
  { json }: ImportOptions,
) {
  if (json) {
    printJson({ source, session: there, from: header.source, fromSession: session, events, added });
    return;
  }
  const what = `session ${session} of ${header.source}, ${plural(events, "event")}`;
  const as = there === session ? "" : `, as session ${there}`;
  print(`${shortSource(source)}: ${added === 0 ? `${what}: already recorded${as}` : `recorded ${what}${as}`}`);
}
