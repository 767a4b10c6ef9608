import { createParser } from "eventsource-parser";
import { unreachable } from "../../api/api.ts";

// Messages of stdio, one a line, go to the server's /mcp as they are, and its answers come back as they are. The server stands
// for itself: which tools there are, and which revision of the protocol, is decided there.

export type McpBridgeOptions = {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Takes a message without its end of line. */
  readonly write: (message: string) => void;
};

/** What of a message the bridge reads. */
type Message = {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: unknown;
    readonly uri?: unknown;
    readonly requestId?: string | number;
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
};

const versionKey = "io.modelcontextprotocol/protocolVersion";
const codes = { parse: -32_700, invalid: -32_600, server: -32_000 };

export class McpBridge {
  readonly #options: McpBridgeOptions;
  /** Requests that are not answered yet. */
  readonly #open = new Map<string | number, AbortController>();
  readonly #sending = new Set<Promise<void>>();
  /** The revision that `initialize` has agreed on; newer ones name it in each message. */
  #version: string | undefined;

  constructor(options: McpBridgeOptions) {
    this.#options = options;
  }

  /** Sends a message on. The answer is written when it comes: others may be sent meanwhile. */
  take(line: string): void {
    if (line.trim() === "") return;
    let read: unknown;
    try {
      read = JSON.parse(line);
    } catch {
      this.#refuse(null, codes.parse, "the message is not JSON");
      return;
    }
    if (typeof read !== "object" || read === null || Array.isArray(read)) {
      this.#refuse(null, codes.invalid, "a message is one JSON object: MCP has no batches");
      return;
    }
    const message: Message = read;
    const { id, method, params } = message;
    if (method === "notifications/cancelled") {
      // Over HTTP a request is cancelled by the end of its connection.
      this.#open.get(params?.requestId ?? "")?.abort();
      return;
    }
    const abort = new AbortController();
    if (id !== undefined) this.#open.set(id, abort);
    const sending = this.#send(line, message, abort.signal)
      .catch((error: unknown) => {
        if (abort.signal.aborted || id === undefined) return;
        this.#refuse(id, codes.server, unreachable(this.#options.base, error).message);
      })
      .finally(() => {
        this.#sending.delete(sending);
        if (id !== undefined) this.#open.delete(id);
      });
    this.#sending.add(sending);
  }

  /** Answers what came before the end of the input. */
  async end(): Promise<void> {
    await Promise.all(this.#sending);
  }

  async #send(body: string, message: Message, signal: AbortSignal): Promise<void> {
    const { base, headers } = this.#options;
    const response = await fetch(`${base}/mcp`, {
      method: "POST",
      headers: { ...headers, ...this.#standardHeaders(message) },
      body,
      signal,
    });
    const { id, method } = message;
    const take = (text: string) => {
      if (method === "initialize") this.#version = versionIn(text) ?? this.#version;
      this.#options.write(text.replace(/\s*\n\s*/g, " "));
    };
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      let isAnswered = false;
      const parser = createParser({
        onEvent: ({ data }) => {
          isAnswered ||= isAnswerTo(id, data);
          take(data);
        },
      });
      try {
        for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) parser.feed(text);
      } catch (error) {
        if (signal.aborted) throw error;
      }
      // A server that is stopped, or a proxy, may end it early: an assistant would wait for ever.
      if (!isAnswered && id !== undefined)
        this.#refuse(id, codes.server, `${base} ended the connection before its answer: ask again`);
      return;
    }
    const text = await response.text();
    if (id === undefined) return;
    if (text.includes('"jsonrpc"')) take(text);
    else this.#refuse(id, codes.server, reasonIn(text) ?? `${base} answered ${response.status}`);
  }

  /** HTTP repeats a part of the message in its head. */
  #standardHeaders({ method, params }: Message): Record<string, string> {
    const version = params?._meta?.[versionKey] ?? this.#version;
    const name = params?.name ?? params?.uri;
    const given = { "mcp-protocol-version": version, "mcp-method": method, "mcp-name": name };
    return {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => isHeader(entry[1]))),
    };
  }

  #refuse(id: string | number | null, code: number, message: string): void {
    this.#options.write(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }));
  }
}

function isHeader(value: unknown): boolean {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/** Notifications may come before the answer. */
function isAnswerTo(id: Message["id"], text: string): boolean {
  try {
    const read = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return read.id === id && ("result" in read || "error" in read);
  } catch {
    return false;
  }
}

function versionIn(text: string): string | undefined {
  return (JSON.parse(text) as { readonly result?: { readonly protocolVersion?: string } }).result?.protocolVersion;
}

/** The gateway's own refusal, such as that of a token. */
function reasonIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly error?: { readonly message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}
