import { type TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { WebSocket } from "ws";
import { z } from "zod";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { CallContext } from "../../call-context.ts";

/** PROTOCOL.md, beside this file, is the contract. */
export const subprotocol = "tapedeck.v1.json";

export const closeCodes = { goingAway: 1001, notUnderstood: 4400, noPong: 4408, tooManySubscriptions: 4429 } as const;

const id = z.string().min(1).max(64);

const clientMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("subscribe"),
    id,
    after: z.string().optional(),
    filter: z.record(z.string(), z.unknown()).optional(),
    state: z.boolean().optional(),
    original: z.boolean().optional(),
  }),
  z.strictObject({ type: z.literal("unsubscribe"), id }),
  z.strictObject({ type: z.literal("ping") }),
]);

export type SocketLimits = {
  /** Bytes that may wait unread for one socket before its subscriptions stop asking for more. */
  readonly unread: number;
  readonly subscriptions: number;
  /** How often the peer is pinged, and how long it may stay silent. */
  readonly pingMs: number;
  readonly silentMs: number;
};

export const socketLimits: SocketLimits = { unread: 1 << 20, subscriptions: 64, pingMs: 15_000, silentMs: 35_000 };

/** Serves one socket until it closes. */
export function serveSocket(
  socket: WebSocket,
  api: TapedeckApi,
  caller: Pick<CallContext, "workspace" | "who">,
  ownError: (error: unknown) => TapedeckError,
  limits: SocketLimits = socketLimits,
): void {
  const subscriptions = new Map<string, AbortController>();
  let heard = Date.now();

  const send = (json: string) => {
    if (socket.readyState === socket.OPEN) socket.send(json);
  };
  const sendError = (error: unknown, subscription?: string) => {
    const body = toErrorBody(ownError(error));
    send(JSON.stringify({ type: "error", ...(subscription !== undefined && { id: subscription }), error: body }));
  };

  const pings = setInterval(() => {
    if (Date.now() - heard > limits.silentMs) socket.close(closeCodes.noPong, "no answer to pings");
    // A peer that is gone answers no close frame either.
    if (Date.now() - heard > limits.silentMs + limits.pingMs) socket.terminate();
    else socket.ping();
  }, limits.pingMs);
  socket.on("pong", () => {
    heard = Date.now();
  });
  socket.on("close", () => {
    clearInterval(pings);
    for (const subscription of subscriptions.values()) subscription.abort();
  });
  socket.on("error", () => {}); // a protocol error closes the socket; `close` cleans up

  socket.on("message", (data, isBinary) => {
    heard = Date.now();
    const message = isBinary ? undefined : parseObject(String(data));
    if (message === undefined) {
      socket.close(closeCodes.notUnderstood, "expected a text frame with one JSON object");
      return;
    }
    const parsed = clientMessage.safeParse(message);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const field = issue?.path.join(".") ?? "";
      const body = {
        code: "invalid_argument",
        message: `${field === "" ? "message" : field}: ${issue?.message}`,
        field,
      };
      const known = id.safeParse(message.id);
      send(JSON.stringify({ type: "error", ...(known.success && { id: known.data }), error: body }));
      return;
    }
    switch (parsed.data.type) {
      case "ping":
        send('{"type":"pong"}');
        return;
      case "unsubscribe":
        unsubscribe(parsed.data.id);
        return;
      case "subscribe":
        start(parsed.data);
    }
  });

  function unsubscribe(name: string): void {
    const subscription = subscriptions.get(name);
    subscription?.abort();
    subscriptions.delete(name);
    send(JSON.stringify({ type: "complete", id: name }));
  }

  function start(request: Extract<z.infer<typeof clientMessage>, { type: "subscribe" }>): void {
    if (subscriptions.has(request.id)) {
      const message = `id "${request.id}" is in use on this socket: unsubscribe it first, or choose another`;
      send(JSON.stringify({ type: "error", error: { code: "invalid_argument", message, field: "id" } }));
      return;
    }
    if (subscriptions.size >= limits.subscriptions) {
      socket.close(closeCodes.tooManySubscriptions, `more than ${limits.subscriptions} subscriptions`);
      return;
    }
    const over = new AbortController();
    subscriptions.set(request.id, over);
    run(request, over.signal)
      .catch((error: unknown) => {
        if (!over.signal.aborted) sendError(error, request.id);
      })
      .finally(() => {
        if (subscriptions.get(request.id) === over) subscriptions.delete(request.id);
      });
  }

  async function run(
    { id: name, after, filter, state, original }: Extract<z.infer<typeof clientMessage>, { type: "subscribe" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const request = {
      ...(after !== undefined && { after }),
      ...(filter !== undefined && { filter }),
      ...(state !== undefined && { state }),
      ...(original !== undefined && { original }),
    };
    const { messages } = await api.subscribe(request, { ...caller, signal });
    const label = `,"id":${JSON.stringify(name)},`;
    for await (const { json } of messages) {
      if (signal.aborted) return;
      // The rendering is shared: the id goes in after its type, {"type":"event","id":"a","position":…
      const at = json.indexOf(",");
      send(json.slice(0, at) + label + json.slice(at + 1));
      if (socket.bufferedAmount > limits.unread) await roomAgain(signal);
    }
  }

  /** Resolves when less than the limit waits unread; ws says nothing when it drains, so it is looked at. */
  async function roomAgain(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && socket.readyState === socket.OPEN && socket.bufferedAmount > limits.unread / 2) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
