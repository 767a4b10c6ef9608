import { type FiledSession, type SessionFile, verifySessionFile } from "@tapedeck/ingest/import/session-file";
import { parseSourceName, sourceParts } from "@tapedeck/shared/source";
import { shortSource } from "../ask/sessions.ts";
import { CommandError } from "../command-error.ts";
import type { ImportOptions } from "../commands/import.ts";
import { grpcTarget } from "../gateway-address.ts";
import { type Pushed, pushSession } from "./push-session.ts";

type Verified = SessionFile & { readonly file: string };

/** Session files, all of which are read to their ends before anything of them is recorded. */
export async function importSessionFiles(files: readonly string[], options: ImportOptions): Promise<void> {
  const target = grpcTarget(options.to);
  const verified: Verified[] = [];
  for (const file of files) verified.push({ file, ...(await verifySessionFile(file)) });
  for (const one of verified) {
    for (const session of one.sessions)
      tell(session, one, await pushSession({ target, ...place(one, options), session }), options);
  }
}

/** Under the names that they had, where no others are given: the session is not whoever's who imports it. */
function place({ file, header }: Verified, { developer, project, label = {} }: ImportOptions) {
  const source = parseSourceName(header.source);
  if (source === undefined) throw new CommandError(`${header.source} is not a source.`);
  const parts = sourceParts(source);
  const hello = {
    ...{ developer: developer ?? parts.developer, project: project ?? parts.project, upstream: header.upstream },
    labels: { ...label },
  };
  return { file, header, hello };
}

function tell(
  { session, events }: FiledSession,
  { header }: Verified,
  { source, added }: Pushed,
  { json }: ImportOptions,
) {
  if (json) {
    process.stdout.write(`${JSON.stringify({ source, session, from: header.source, events, added })}\n`);
    return;
  }
  const what = `session ${session} of ${header.source}, ${events} events`;
  console.log(`${shortSource(source)}: ${added === 0 ? `${what}: recorded already` : `recorded ${what}`}`);
}
