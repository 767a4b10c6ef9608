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
  /** After this long a silence the gateway is pinged; after as long again it counts as gone. */
  readonly quietMs: number;
};

export type ConnectionWatch = {
  readonly opened: () => void;
  readonly received: (text: string) => void;
  /** Once, and nothing after it; not when we close. */
  readonly lost: (end: { readonly wasOpen: boolean; readonly code: number; readonly reason: string }) => void;
};

/** A timer that takes this many times as long shows that this process was held up. */
const punctual = 1.05;

/** One socket, from its beginning to its end. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #watch: ConnectionWatch;
  readonly #socket: WebSocketLike;
  readonly #timer: ReturnType<typeof setInterval>;
  #isOpen = false;
  #isOver = false;
  #isResponding = true;
  #checkedAt = performance.now();
  #isExcused = false;

  constructor(options: ConnectionOptions, watch: ConnectionWatch) {
    this.#options = options;
    this.#watch = watch;
    this.#socket = new options.WebSocket(options.url, [...options.protocols]);
    this.#timer = setInterval(() => this.#check(), options.quietMs);
    this.#socket.addEventListener("open", () => this.#opened());
    this.#socket.addEventListener("message", ({ data }) => this.#received(String(data)));
    this.#socket.addEventListener("error", () => {}); // `close` follows, with the reason
    this.#socket.addEventListener("close", ({ code, reason }) => this.#end(code, reason));
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#socket.close(1000);
  }

  #opened(): void {
    if (this.#isOver) return;
    this.#isOpen = true;
    this.#isResponding = true;
    this.#watch.opened();
  }

  #received(text: string): void {
    if (this.#isOver) return;
    this.#isResponding = true;
    this.#watch.received(text);
  }

  #check(): void {
    const now = performance.now();
    const isLate = now - this.#checkedAt > this.#options.quietMs * punctual;
    this.#checkedAt = now;
    // A process that was held up may not have read the answer yet. Once: timers of a page in the background are always
    // late.
    this.#isExcused = !this.#isResponding && isLate && !this.#isExcused;
    // A dead network answers neither a ping nor the closing: the socket's own end could be minutes away.
    if (!this.#isResponding && !this.#isExcused) this.#end(1006, "no answer to pings");
    else if (this.#isOpen) this.#socket.send('{"type":"ping"}');
    this.#isResponding = false;
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.close();
    this.#watch.lost({ wasOpen: this.#isOpen, code, reason });
  }
}
