import type { Msg, NatsConnection } from "nats";
import { z } from "zod";
import { asciiName, nameOfAscii } from "../../source.ts";
import { type TablesEnd, tablesEndSchema } from "../tables-end.ts";

/** A request that the query answers whose name it has, for a workspace; it is not stored. */
const requestSubject = (workspace: string) => `tapedeck.tables.${asciiName(workspace)}.passed`;
const workspaceOf = (subject: string) => nameOfAscii(subject.split(".")[2] ?? "");

const requestSchema = tablesEndSchema.extend({ query: z.string() });
const [yes, no] = ["yes", "no"];

/**
 * Answers erasures, until it is disposed. `havePassed`: whether every table of the database with rows of the workspace has
 * had all messages up to the end. An error means that it is not known, which is a no.
 */
export function answerTablesPassed(
  nats: NatsConnection,
  query: string,
  havePassed: (workspace: string, end: TablesEnd) => Promise<boolean>,
): Disposable {
  const answer = async (message: Msg) => {
    const request = requestSchema.parse(message.json());
    if (request.query !== query) return;
    const isPassed = await havePassed(workspaceOf(message.subject), request).catch(() => false);
    if (!nats.isClosed()) message.respond(isPassed ? yes : no);
  };
  const requests = nats.subscribe(requestSubject("*"), {
    callback: (error, message) => {
      // What can't be read is no request of this version.
      if (error === null) answer(message).catch(() => {});
    },
  });
  return {
    [Symbol.dispose]: () => {
      if (!nats.isClosed()) requests.unsubscribe();
    },
  };
}

/** False, too, when the query does not answer within the time. */
export async function requestTablesPassed(
  nats: NatsConnection,
  workspace: string,
  { epoch, seq, query, timeoutMs }: TablesEnd & { readonly query: string; readonly timeoutMs: number },
): Promise<boolean> {
  try {
    const request = JSON.stringify({ epoch, seq, query });
    return (await nats.request(requestSubject(workspace), request, { timeout: timeoutMs })).string() === yes;
  } catch {
    return false;
  }
}
