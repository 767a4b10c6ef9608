import type { NatsConnection } from "nats";
import { asciiName, nameOfAscii } from "../../source.ts";

/** A request that ingest answers when the workspace has a log; it is not stored. */
const subjectOf = (workspace: string) => `tapedeck.log.${asciiName(workspace)}.open`;
const timeoutMs = 5_000;

/** Opens logs for services that may not create them, until the connection is closed. One of several ingests does. */
export function openLogsOnRequest(nats: NatsConnection, open: (workspace: string) => Promise<void>): void {
  nats.subscribe(subjectOf("*"), {
    queue: "ingest",
    callback: (error, message) => {
      if (error !== null) return;
      const workspace = nameOfAscii(message.subject.split(".")[2] ?? "");
      open(workspace).then(
        () => message.respond(""),
        (cause: Error) => message.respond(cause.message),
      );
    },
  });
}

/** Resolves when the workspace has a log. Rejects with one sentence: none answers, or one can't open it. */
export async function requestLog(nats: NatsConnection, workspace: string): Promise<void> {
  const asked = nats.request(subjectOf(workspace), "", { timeout: timeoutMs });
  const answer = await asked.catch((cause: unknown) => {
    throw new Error("none is connected to NATS, or it is busy", { cause });
  });
  if (answer.string() !== "") throw new Error(answer.string());
}
