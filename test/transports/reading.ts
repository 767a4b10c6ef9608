import {
  type Endpoint,
  type ErrorBody,
  type Message,
  Refused,
  type StreamRequest,
  type Transport,
} from "./transport.ts";

/** Reads up to and including the last wanted message, or until the server ends the stream. */
export async function readUntil(
  transport: Transport,
  endpoint: Endpoint,
  request: StreamRequest,
  isLast: (message: Message, soFar: readonly Message[]) => boolean,
): Promise<Message[]> {
  const leaving = new AbortController();
  const messages: Message[] = [];
  try {
    for await (const message of transport.read(endpoint, request, leaving.signal)) {
      messages.push(message);
      if (isLast(message, messages)) return messages;
    }
    return messages;
  } finally {
    leaving.abort();
  }
}

/** The error that the gateway refuses a subscription with. */
export async function refusalOf(transport: Transport, endpoint: Endpoint, request: StreamRequest): Promise<ErrorBody> {
  try {
    const messages = await readUntil(transport, endpoint, request, ({ type }) => type === "caught_up");
    throw new Error(`${transport.name} was not refused but read ${messages.length} messages`);
  } catch (error) {
    if (error instanceof Refused) return error.body;
    throw error;
  }
}

export const isCaughtUp = ({ type }: Message): boolean => type === "caught_up";

export const idsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap(({ event }) => (event === undefined ? [] : [event.id]));

export const typesOf = (messages: readonly Message[]): string[] => messages.map(({ type }) => type);
