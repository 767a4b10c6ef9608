import type { WebSocket } from "ws";
import { type SocketOptions, socketLimits } from "./socket-options.ts";
import { SocketSession } from "./socket-session.ts";

/** Serves one socket until it closes. */
export function serveSocket(socket: WebSocket, { limits = socketLimits, ...options }: SocketOptions): void {
  new SocketSession(socket, { ...options, limits }).start();
}
