import { invalidArgument, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import { startTimer } from "@tapedeck/shared/sync/timers";
import type { WebSocket } from "ws";
import { Heartbeat } from "../liveness.ts";
import { type Outbox, outbox } from "./outbox.ts";
import { type ClientMessage, clientMessage, closeCodes, type Subscribe, subscriptionId } from "./protocol.ts";
import type { SocketOptions } from "./socket-options.ts";
import { SocketSubscriptions } from "./socket-subscriptions.ts";

/** How long a peer may take to answer a close frame. */
const farewellMs = 1_000;

/** How long a client over its message rate is not read. Messages are counted by the second. */
const holdMs = 1_000;

/** One socket: reads the client's messages, and ends when the peer is gone or its token is over. */
export class SocketSession {
  readonly #socket: WebSocket;
  readonly #options: Required<SocketOptions>;
  readonly #outbox: Outbox;
  readonly #heartbeat: Heartbeat;
  readonly #subscriptions: SocketSubscriptions;
  readonly #closed = new AbortController();
  /** The client is over its message rate, and is not read for now. */
  #isHeld = false;

  constructor(socket: WebSocket, options: Required<SocketOptions>) {
    const { api, caller, watch, tcp, limits } = options;
    this.#socket = socket;
    this.#options = options;
    this.#outbox = outbox({ socket, tcp, max: limits.unreadBytes, taken: (waitedMs) => this.#taken(waitedMs) });
    this.#subscriptions = new SocketSubscriptions({
      api,
      caller,
      outbox: this.#outbox,
      watch,
      unreadBytes: limits.unreadBytes,
      failed: (error, id) => this.#refuse(error, id),
    });
    this.#heartbeat = new Heartbeat(
      limits,
      () => socket.ping(),
      () => this.#closeFor(closeCodes.noPong, "no answer to pings"),
    );
  }

  start(): void {
    const socket = this.#socket;
    this.#endWithToken();
    socket.on("pong", () => this.#heartbeat.alive());
    socket.on("ping", () => this.#pauseIfFull());
    socket.on("close", () => {
      this.#closed.abort();
      this.#heartbeat.stop();
      this.#subscriptions.endAll();
    });
    socket.on("error", () => {}); // a protocol error closes the socket; `close` cleans up
    try {
      this.#options.usage.open(this.#closed.signal);
    } catch (error) {
      this.#refuse(error);
      this.#closeFor(closeCodes.tooMuch, "too many live connections");
      return;
    }
    socket.on("message", (data, isBinary) => this.#received(isBinary ? undefined : parseObject(String(data))));
  }

  #endWithToken(): void {
    const { revoked } = this.#options.caller;
    if (revoked === undefined) return;
    const end = () => {
      this.#subscriptions.endAll();
      this.#refuse(revoked.reason);
      this.#closeFor(closeCodes.unauthenticated, "the token has expired or was revoked");
    };
    if (revoked.aborted) end();
    else revoked.addEventListener("abort", end, { once: true, signal: this.#closed.signal });
  }

  #received(message: Record<string, unknown> | undefined): void {
    this.#heartbeat.alive();
    if (message === undefined) {
      this.#socket.close(closeCodes.notUnderstood, "expected a text frame with one JSON object");
      return;
    }
    this.#options.usage
      .message()
      .then(
        () => this.#handle(message),
        (error: unknown) => this.#hold(error, message),
      )
      .finally(() => this.#pauseIfFull());
  }

  #handle(message: Record<string, unknown>): void {
    if (this.#closed.signal.aborted) return;
    const parsed = clientMessage.safeParse(message, { error: issueText });
    if (parsed.success) {
      this.#execute(parsed.data);
      return;
    }
    const [issue] = parsed.error.issues;
    const field = issue?.path.join(".") ?? "";
    const text = `${field === "" ? "message" : field}: ${issue?.message}`;
    const known = subscriptionId.safeParse(message.id);
    this.#refuse(invalidArgument(text, field), known.success ? known.data : undefined);
  }

  #execute(message: ClientMessage): void {
    switch (message.type) {
      case "ping":
        this.#outbox.answer('{"type":"pong"}');
        return;
      case "unsubscribe":
        this.#subscriptions.end(message.id);
        this.#outbox.answer(JSON.stringify({ type: "complete", id: message.id }));
        return;
      case "subscribe":
        this.#subscribe(message);
    }
  }

  #subscribe(request: Subscribe): void {
    const { id } = request;
    const { limits } = this.#options;
    if (this.#subscriptions.has(id)) {
      // An error with the id would end the subscription that has it.
      const message = `id "${id}" is in use on this socket: unsubscribe it first, or choose another`;
      this.#refuse(invalidArgument(message, "id"));
      return;
    }
    if (this.#subscriptions.count >= limits.subscriptions) {
      this.#socket.close(closeCodes.tooMuch, `more than ${limits.subscriptions} subscriptions`);
      return;
    }
    this.#subscriptions.begin(request);
  }

  /** A client over its message rate gets an error and is not read for a second. */
  #hold(error: unknown, message: Record<string, unknown>): void {
    const { data } = clientMessage.safeParse(message);
    // An error with the id of a running subscription would mean that it is over.
    const isNew = data?.type === "subscribe" && !this.#subscriptions.has(data.id);
    this.#refuse(error, isNew ? data.id : undefined);
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#socket.pause();
    startTimer(() => {
      this.#isHeld = false;
      if (!this.#outbox.isFull) this.#socket.resume();
    }, holdMs).unref();
  }

  /** A peer that reads slowly is alive, though its answer to a ping may be far behind the messages that wait before it. */
  #taken(waitedMs: number): void {
    if (waitedMs > this.#options.limits.quietMs / 15) this.#heartbeat.alive();
    if (this.#socket.isPaused && !this.#outbox.isFull && !this.#isHeld) this.#socket.resume();
  }

  #pauseIfFull(): void {
    const isBehind = this.#socket.bufferedAmount > 2 * this.#options.limits.unreadBytes;
    if (this.#outbox.isFull || isBehind) this.#socket.pause();
  }

  #closeFor(code: number, reason: string): void {
    this.#socket.close(code, reason);
    // A peer that is gone answers no close frame.
    startTimer(() => this.#socket.terminate(), farewellMs).unref();
  }

  #refuse(error: unknown, id?: string): void {
    const known = this.#options.watch.failed(error);
    const body = known instanceof TapedeckError ? toErrorBody(known) : { code: "internal", message: "internal error" };
    this.#outbox.answer(JSON.stringify({ type: "error", ...(id !== undefined && { id }), error: body }));
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
