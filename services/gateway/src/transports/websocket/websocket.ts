import type { Socket } from "node:net";
import { invalidArgument, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { WebSocket } from "ws";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { CallContext, Caller } from "../../call-context.ts";
import { defaultLimits } from "../../limits/settings.ts";
import type { CallWatch } from "../../metrics.ts";
import { heartbeat, type Liveness, liveness } from "../liveness.ts";
import { outbox } from "./outbox.ts";
import { type ClientMessage, clientMessage, closeCodes, type Subscribe, subscriptionId } from "./protocol.ts";

export type SocketOptions = {
  readonly api: Pick<TapedeckApi, "subscribe">;
  readonly caller: Caller;
  readonly watch: CallWatch;
  /** The connection below the WebSocket. */
  readonly tcp: Socket;
  readonly limits?: SocketLimits;
  readonly usage: SocketUsage;
};

/** What a socket uses up of its caller's limits. */
export type SocketUsage = {
  /** One more live connection until `over` aborts. @throws TapedeckError limit_exceeded */
  readonly open: (over: AbortSignal) => void;
  /** One more message. @throws TapedeckError limit_exceeded */
  readonly message: () => Promise<void>;
};

export type SocketLimits = Liveness & {
  /** Bytes that may wait unread for one socket before its subscriptions stop asking for more. */
  readonly unread: number;
  readonly subscriptions: number;
};

const farewellMs = 1_000;

/** Messages are counted by the second. */
const holdMs = 1_000;

export const socketLimits: SocketLimits = {
  ...liveness,
  unread: defaultLimits.unreadBytes,
  subscriptions: defaultLimits.webSocket.subscriptions,
};

/** Serves one socket until it closes. */
export function serveSocket(
  socket: WebSocket,
  { api, caller, watch, tcp, limits = socketLimits, usage }: SocketOptions,
): void {
  const subscriptions = new Map<string, AbortController>();
  const box = outbox({ socket, tcp, most: limits.unread, taken });
  const beat = heartbeat(
    limits,
    () => socket.ping(),
    () => closeFor(closeCodes.noPong, "no answer to pings"),
  );
  const closed = new AbortController();
  let isHeld = false;
  const { revoked } = caller;
  if (revoked?.aborted) letGo();
  else revoked?.addEventListener("abort", letGo, { once: true, signal: closed.signal });
  socket.on("pong", beat.alive);
  socket.on("ping", pauseIfFull);
  socket.on("close", () => {
    closed.abort();
    beat.stop();
    for (const subscription of subscriptions.values()) subscription.abort();
  });
  socket.on("error", () => {}); // a protocol error closes the socket; `close` cleans up
  try {
    usage.open(closed.signal);
  } catch (error) {
    refuse(error);
    closeFor(closeCodes.tooMuch, "too many live connections");
    return;
  }
  socket.on("message", (data, isBinary) => {
    beat.alive();
    const message = isBinary ? undefined : parseObject(String(data));
    if (message === undefined) {
      socket.close(closeCodes.notUnderstood, "expected a text frame with one JSON object");
      return;
    }
    usage
      .message()
      .then(
        () => hear(message),
        (error: unknown) => hold(error, message),
      )
      .finally(pauseIfFull);
  });

  function hear(message: Record<string, unknown>): void {
    if (closed.signal.aborted) return;
    const parsed = clientMessage.safeParse(message);
    if (parsed.success) {
      obey(parsed.data);
      return;
    }
    const [issue] = parsed.error.issues;
    const field = issue?.path.join(".") ?? "";
    const text = `${field === "" ? "message" : field}: ${issue?.message}`;
    const known = subscriptionId.safeParse(message.id);
    refuse(invalidArgument(text, field), known.success ? known.data : undefined);
  }

  /** Who says more than it may is told, and read no more for a while. */
  function hold(error: unknown, message: Record<string, unknown>): void {
    const { data } = clientMessage.safeParse(message);
    // With the id of one that goes on it would mean that it is over.
    const isNew = data?.type === "subscribe" && !subscriptions.has(data.id);
    refuse(error, isNew ? data.id : undefined);
    if (isHeld) return;
    isHeld = true;
    socket.pause();
    setTimeout(goOn, holdMs).unref();
  }

  function goOn(): void {
    isHeld = false;
    if (!box.isFull) socket.resume();
  }

  function closeFor(code: number, reason: string): void {
    socket.close(code, reason);
    // A peer that is gone answers no close frame.
    setTimeout(() => socket.terminate(), farewellMs).unref();
  }

  /** The caller's token is over: nothing more is sent than that. */
  function letGo(): void {
    for (const subscription of subscriptions.values()) subscription.abort();
    refuse(revoked?.reason);
    closeFor(closeCodes.unauthenticated, "the token has expired or was revoked");
  }

  /** Who reads slowly but reads is alive, though the answer to a ping may be far behind what waits before it. */
  function taken(waitedMs: number): void {
    if (waitedMs > limits.quietMs / 15) beat.alive();
    if (socket.isPaused && !box.isFull && !isHeld) socket.resume();
  }

  function pauseIfFull(): void {
    if (box.isFull || socket.bufferedAmount > 2 * limits.unread) socket.pause();
  }

  function obey(message: ClientMessage): void {
    switch (message.type) {
      case "ping":
        box.answer('{"type":"pong"}');
        return;
      case "unsubscribe":
        subscriptions.get(message.id)?.abort();
        subscriptions.delete(message.id);
        box.answer(JSON.stringify({ type: "complete", id: message.id }));
        return;
      case "subscribe":
        start(message);
    }
  }

  function refuse(error: unknown, id?: string): void {
    const told = watch.failed(error);
    const body = told instanceof TapedeckError ? toErrorBody(told) : { code: "internal", message: "internal error" };
    box.answer(JSON.stringify({ type: "error", ...(id !== undefined && { id }), error: body }));
  }

  function start(request: Subscribe): void {
    const { id } = request;
    if (subscriptions.has(id)) {
      // Without the id: the subscription that has it goes on.
      refuse(invalidArgument(`id "${id}" is in use on this socket: unsubscribe it first, or choose another`, "id"));
      return;
    }
    if (subscriptions.size >= limits.subscriptions) {
      socket.close(closeCodes.tooMuch, `more than ${limits.subscriptions} subscriptions`);
      return;
    }
    const over = new AbortController();
    subscriptions.set(id, over);
    const { signal } = over;
    run(request, { ...caller, signal })
      .catch((error: unknown) => {
        if (!signal.aborted) refuse(error, id);
      })
      .finally(() => {
        if (subscriptions.get(id) === over) subscriptions.delete(id);
      });
  }

  async function run({ type: _, id, after, ...wanted }: Subscribe, context: CallContext): Promise<void> {
    const request = Object.fromEntries(Object.entries({ ...wanted, after }).filter(([, value]) => value !== undefined));
    const { messages } = await api.subscribe(request, context);
    const label = `,"id":${JSON.stringify(id)},`;
    for await (const { json } of messages) {
      // The rendering is shared: the id goes in after its type, {"type":"event","id":"a","position":…
      const at = json.indexOf(",");
      await box.put(json.slice(0, at) + label + json.slice(at + 1), context.signal);
      if (context.signal.aborted) return;
      watch.sent(json.length);
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
