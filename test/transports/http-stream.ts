import { get, type IncomingMessage } from "node:http";
import { createParser } from "eventsource-parser";
import {
  ConnectionLost,
  type Endpoint,
  type Message,
  refused,
  type StreamRequest,
  type Transport,
} from "./transport.ts";

/** Splits chunks into whole messages; keeps the rest for the next chunk. */
type Parse = (text: string) => readonly Message[];

export const serverSentEvents: Transport = httpStream("server-sent events", "text/event-stream", () => {
  const come: Message[] = [];
  const parser = createParser({
    onEvent: ({ event, id, data }) => {
      const message = JSON.parse(data) as Message;
      // The fields that EventSource reads must agree with the message.
      if (event === "error") throw refused(message);
      if (id !== message.position) throw new Error(`id ${id} of a message at ${message.position}`);
      if ((event ?? "event") !== message.type) throw new Error(`event: ${event} of a message ${message.type}`);
      come.push(message);
    },
  });
  return (text) => {
    parser.feed(text);
    return come.splice(0);
  };
});

export const ndjson: Transport = httpStream("NDJSON", "application/x-ndjson", () => {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    return lines.map((line) => {
      const message = JSON.parse(line) as Message;
      if ((message.type as string) === "error") throw refused(message);
      return message;
    });
  };
});

function httpStream(name: string, accept: string, parserOf: () => Parse): Transport {
  return {
    name,
    async *read(endpoint, request, signal) {
      const response = await open(endpoint, request, accept, signal);
      const parse = parserOf();
      const decoder = new TextDecoder();
      try {
        for await (const chunk of response as AsyncIterable<Buffer>)
          yield* parse(decoder.decode(chunk, { stream: true }));
      } catch (cause) {
        if (!isBroken(cause)) throw cause;
        throw new ConnectionLost("the answer broke off", { cause });
      } finally {
        response.destroy();
      }
    },
  };
}

async function open(
  { http, token }: Endpoint,
  { after, until, speed, filter = {}, state }: StreamRequest,
  accept: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const query = new URLSearchParams();
  for (const [field, values] of Object.entries(filter))
    for (const value of values) query.append(field.slice(0, -1), value);
  // EventSource sends its last position in a header; the URL that it repeats begins earlier, and must be ignored.
  const resumes = accept === "text/event-stream" && after?.includes("-") === true && !after.includes(":");
  if (after !== undefined) query.set("after", resumes ? "start" : after);
  if (until !== undefined) query.set("until", until);
  if (speed !== undefined) query.set("speed", speed.toFixed(6));
  if (state !== undefined) query.set("state", String(state));
  const headers = {
    accept,
    ...(resumes && { "last-event-id": after }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const url = `http://${http}/api/v1/stream?${query}`;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, agent: false, signal }, resolve).on("error", (cause) => {
      reject(new ConnectionLost("no answer", { cause }));
    });
  });
  if (response.statusCode === 200) return response;
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  throw refused(JSON.parse(text), response.statusCode);
}

/** Only errors of the system or Node have a code; ours have none. */
function isBroken(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause;
}
