/** The part of the standard WebSocket that is used here. Browsers, Node and the package `ws` provide it. */
export type WebSocketLike = {
  send(text: string): void;
  close(code?: number): void;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { readonly code: number; readonly reason: string }) => void): void;
};

export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

export type ConnectionOptions = {
  readonly WebSocket: WebSocketClass;
  /** ws: or wss: */
  readonly url: string;
  readonly protocols: readonly string[];
  /** After so much silence the gateway is asked whether it is there; after as much again it is not. */
  readonly quietMs: number;
};

export type ConnectionWatch = {
  readonly opened: () => void;
  readonly received: (text: string) => void;
  /** Once, and nothing after it; not when we close. */
  readonly lost: (end: { readonly wasOpen: boolean; readonly code: number; readonly reason: string }) => void;
};

export type Connection = { readonly send: (message: object) => void; readonly close: () => void };

/** A timer that takes so many times as long indicates that this process was held up. */
const punctual = 1.05;

/** One socket, from its beginning to its end. */
export function openConnection(options: ConnectionOptions, watch: ConnectionWatch): Connection {
  const socket = new options.WebSocket(options.url, [...options.protocols]);
  let isOpen = false;
  let isOver = false;
  let isHeard = true;
  let checkedAt = performance.now();
  let isExcused = false;
  const check = setInterval(() => {
    const now = performance.now();
    const isLate = now - checkedAt > options.quietMs * punctual;
    checkedAt = now;
    // A process that was held up may not have read the answer yet. Once: timers of a page in the background are always
    // late.
    isExcused = !isHeard && isLate && !isExcused;
    // A dead network answers neither a ping nor the closing: the socket's own end could be minutes away.
    if (!isHeard && !isExcused) end(1006, "no answer to pings");
    else if (isOpen) socket.send('{"type":"ping"}');
    isHeard = false;
  }, options.quietMs);

  function over(): void {
    isOver = true;
    clearInterval(check);
    socket.close(1000);
  }

  function end(code: number, reason: string): void {
    if (isOver) return;
    over();
    watch.lost({ wasOpen: isOpen, code, reason });
  }

  socket.addEventListener("open", () => {
    if (isOver) return;
    isOpen = true;
    isHeard = true;
    watch.opened();
  });
  socket.addEventListener("message", ({ data }) => {
    if (isOver) return;
    isHeard = true;
    watch.received(String(data));
  });
  socket.addEventListener("error", () => {}); // `close` follows, with the reason
  socket.addEventListener("close", ({ code, reason }) => end(code, reason));

  return {
    send: (message) => socket.send(JSON.stringify(message)),
    close: () => {
      if (!isOver) over();
    },
  };
}
