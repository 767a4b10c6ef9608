import { existsSync } from "node:fs";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { exportFrom } from "../../api/exported-sessions.ts";
import { CommandError } from "../../command-error.ts";
import { grpcTarget } from "../../grpc-target.ts";
import { isSessionFile, sessionEvents, verifySessionFile } from "../../session-file/session-file.ts";

/** Origin of a session: a file that `tapedeck export` wrote, or a Tapedeck server. */
export type SessionOrigin = {
  /** A session's id, or a file. */
  readonly session: string | undefined;
  readonly source: string | undefined;
  /** Address of the Tapedeck server. */
  readonly url: string | undefined;
};

/**
 * All events of one recorded Skaffold session.
 * @throws CommandError when there is none, or it is another upstream's
 */
export async function recordedSession({ session, source, url }: SessionOrigin): Promise<readonly Event[]> {
  if (session !== undefined && existsSync(session)) return ofSkaffold(await sessionInFile(session));
  if (session?.includes(".") === true || session?.includes("/") === true) {
    throw new CommandError(`${session}: no such file, and the id of a session has only letters and digits.`);
  }
  using tapedeck = exportFrom(grpcTarget(url));
  const found = await tapedeck.find(session === undefined ? [] : [session], source);
  const events: Event[] = [];
  for (const one of found.sessions)
    for await (const { event } of tapedeck.events(one, found.position)) events.push(event);
  return ofSkaffold(events);
}

async function sessionInFile(file: string): Promise<Event[]> {
  if (!(await isSessionFile(file))) throw new CommandError(`${file} was not written by \`tapedeck export\`.`);
  const { sessions } = await verifySessionFile(file);
  const [first, second] = sessions;
  if (first === undefined) throw new CommandError(`${file} holds no session.`);
  if (second !== undefined) {
    throw new CommandError(`${file} holds ${sessions.length} sessions, and only one can be replayed: export it alone.`);
  }
  return Array.fromAsync(sessionEvents(file, first));
}

function ofSkaffold(events: readonly Event[]): readonly Event[] {
  const [, , , upstream] = events[0]?.source.split("/") ?? [];
  if (events.length === 0) throw new CommandError("the session holds no events.");
  if (upstream === "skaffold") return events;
  throw new CommandError(`this is a session of ${upstream}: only sessions of Skaffold can be replayed.`);
}
