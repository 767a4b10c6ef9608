import { backoff, pause } from "@tapedeck/shared/streams/pause";
import WebSocket from "ws";
import { CommandError } from "../command-error.ts";

/** As Tapedeck's JSON has it; only what is shown is named. */
export type EventJson = Readonly<Record<string, unknown>> & {
  readonly position: string;
  readonly source: string;
  readonly kind: string;
  readonly summary: string;
  readonly recordedAt: string;
  readonly occurredAt?: string;
  readonly subject?: string;
  readonly outcome?: string;
  readonly error?: { readonly code: string; readonly message: string };
  readonly detail?: Readonly<Record<string, unknown>>;
};

export type Subscribe = {
  /** http://host:port of the gateway. */
  readonly base: string;
  readonly after: string;
  readonly filter: Readonly<Record<string, readonly string[]>>;
  readonly signal: AbortSignal;
  /** True: resolves when everything recorded so far has been given. */
  readonly untilCaughtUp?: boolean;
  readonly onEvent: (event: EventJson) => void;
  /** The connection is lost, or is back. */
  readonly onConnection?: (isOpen: boolean) => void;
};

type Message = {
  readonly type: string;
  readonly position?: string;
  readonly event?: EventJson;
  readonly error?: { readonly message: string };
};

type End = "aborted" | "caught up" | "lost";

const pingMs = 15_000;

/**
 * Gives each event once, in order, over a WebSocket. When that breaks it goes on after the last position it saw, for
 * ever, or until the signal.
 * @throws CommandError when the gateway refuses the subscription, or was never there
 */
export async function subscribe(options: Subscribe): Promise<void> {
  const { signal, onConnection = () => {} } = options;
  const wait = backoff(200, 5_000);
  let { after } = options;
  let wasOpen = false;
  while (!signal.aborted) {
    const end = await connection(options, after, (position) => {
      after = position;
      wait.reset();
      if (!wasOpen) onConnection(true);
      wasOpen = true;
    });
    if (end !== "lost") return;
    if (wasOpen) onConnection(false);
    wasOpen = false;
    await pause(wait.next(), signal);
  }
}

/** One connection, to its end. */
function connection(options: Subscribe, after: string, seen: (position: string) => void): Promise<End> {
  const { base, filter, signal, untilCaughtUp = false, onEvent } = options;
  const socket = new WebSocket(`${base.replace(/^http/, "ws")}/api/v1/ws`, "tapedeck.v1.json", {
    perMessageDeflate: false,
  });
  return new Promise<End>((resolve, reject) => {
    let isAnswering = true;
    const pings = setInterval(() => {
      if (!isAnswering) socket.terminate();
      isAnswering = false;
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    }, pingMs);
    const leave = () => socket.close();
    const settle = (end: End) => {
      clearInterval(pings);
      signal.removeEventListener("abort", leave);
      resolve(signal.aborted ? "aborted" : end);
    };
    const finish = (end: End) => {
      settle(end);
      socket.close();
    };
    signal.addEventListener("abort", leave);
    socket.on("pong", () => {
      isAnswering = true;
    });
    socket.on("open", () => {
      isAnswering = true;
      socket.send(JSON.stringify({ type: "subscribe", id: "tail", after, filter }));
    });
    socket.on("message", (data) => {
      isAnswering = true;
      const message = JSON.parse(String(data)) as Message;
      if (message.type === "event" && message.event !== undefined) onEvent(message.event);
      if (message.position !== undefined) seen(message.position);
      if (message.type === "error") {
        reject(new CommandError(message.error?.message ?? "the subscription was refused"));
        finish("lost");
      }
      if (message.type === "caught_up" && untilCaughtUp) finish("caught up");
    });
    socket.on("error", () => {});
    socket.on("close", () => settle("lost"));
  });
}
