import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import { version } from "@tapedeck/shared/version";
import { isPublicAddress } from "./address-rules.ts";
import { type AllowedHosts, isAllowedHost, refusedAddress, targetError } from "./target-url.ts";

/** What a target has answered, or why it did not. */
export type TargetAnswer =
  | ReceivedAnswer
  /** `reached`: the request may have arrived. */
  | { readonly type: "failure"; readonly error: string; readonly reached: boolean };

/** `body`: its beginning. */
export type ReceivedAnswer = {
  readonly type: "answer";
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly contentType: string | undefined;
  readonly body: Buffer;
  /** The body did not end, or not in time: there is what came of it. */
  readonly isCut?: true;
  /** The body is longer than what is here. */
  readonly isLong?: true;
};

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

export type TargetRequest = { readonly body: Uint8Array; readonly headers: Readonly<Record<string, string>> };

export type HttpTargetOptions = {
  readonly url: string;
  readonly allowed: AllowedHosts;
  /** How long a request may take. Default 15 s. */
  readonly timeoutMs?: number | undefined;
  /** Looks a name up; by default the system does. */
  readonly lookUp?: LookUp;
};

/** The addresses of a name. Rejects when it has none. */
export type LookUp = (host: string) => Promise<readonly LookupAddress[]>;

/** The most that is read of an answer's body. */
const maxBodyBytes = 16 * 1024;
const idleMs = 30_000;

/**
 * Posts to one URL, over one connection that stays open while it is used. A name is looked up once for a connection, and the connection
 * goes to an address that was checked: a name that changes its address in between gains nothing. Redirects are not followed, no
 * proxy is used.
 */
export class HttpTarget implements Disposable {
  readonly #url: URL;
  readonly #refusal: string | undefined;
  readonly #timeoutMs: number;
  readonly #agent: HttpAgent | HttpsAgent;

  constructor({ url, allowed, timeoutMs = 15_000, lookUp = bySystem }: HttpTargetOptions) {
    const reason = targetError(url, allowed);
    this.#refusal = reason === undefined ? undefined : `the target ${reason}`;
    this.#url = new URL(url);
    this.#timeoutMs = timeoutMs;
    const options = {
      keepAlive: true,
      maxSockets: 1,
      timeout: idleMs,
      lookup: checkedLookup(
        lookUp,
        isAllowedHost(this.#url, allowed) ? () => true : isPublicAddress,
        refusedAddress(this.#url),
      ),
    };
    this.#agent = this.#url.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** Never rejects. */
  async post({ body, headers }: TargetRequest, signal: AbortSignal): Promise<TargetAnswer> {
    if (this.#refusal !== undefined) return { type: "failure", error: this.#refusal, reached: false };
    using over = new LinkedController(signal, this.#timeoutMs);
    // A connection that the target has closed while nobody used it says nothing about the request.
    for (let isFirst = true; ; isFirst = false) {
      const sent = this.#send(body, headers, over.signal);
      const answer = await sent.answer;
      if (answer.type === "answer" || !isFirst || !sent.wasReused() || over.signal.aborted) return answer;
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #send(body: Uint8Array, headers: TargetRequest["headers"], signal: AbortSignal) {
    const options = {
      method: "POST",
      agent: this.#agent,
      signal,
      // Some targets refuse requests without the first one. A header of the sink's own replaces it.
      headers: { "user-agent": `tapedeck/${version}`, ...headers, "content-length": String(body.byteLength) },
    };
    const request = (this.#url.protocol === "https:" ? requestHttps : requestHttp)(this.#url, options);
    const answer = answerTo(request, this.#timeoutMs);
    request.end(body);
    return { answer, wasReused: () => request.reusedSocket };
  }
}

function answerTo(request: ClientRequest, timeoutMs: number): Promise<TargetAnswer> {
  return new Promise((resolve) => {
    let isConnected = false;
    request.once("socket", (socket) => {
      if (!socket.connecting) isConnected = true;
      else
        socket.once("connect", () => {
          isConnected = true;
        });
    });
    let response: IncomingMessage | undefined;
    const chunks: Buffer[] = [];
    const failed = (error: Error) => {
      // A target whose answers never end has taken the request all the same, or refused it.
      if (response !== undefined) return resolve({ ...received(response, chunks), isCut: true });
      const isLate = error.name === "TimeoutError" || error.name === "AbortError";
      const text = isLate ? `no answer in ${Math.ceil(timeoutMs / 1_000)} s` : reasonOf(error);
      resolve({ type: "failure", error: text, reached: isConnected });
    };
    request.on("error", failed);
    request.once("response", (begun) => {
      response = begun;
      readBody(begun, chunks).then(() => resolve(received(begun, chunks)), failed);
    });
    // Without this, Node reports neither an answer nor an error of a target that changes to another protocol (101).
    request.once("upgrade", (begun, socket) => {
      socket.destroy();
      resolve(received(begun, chunks));
    });
    // Whatever else may end a request without a word, nobody waits for its answer for ever.
    request.once("close", () => {
      if (response === undefined) failed(new Error("the connection was closed without an answer"));
    });
  });
}

function received({ statusCode: status = 0, headers }: IncomingMessage, chunks: readonly Buffer[]): ReceivedAnswer {
  const { "retry-after": retryAfter, "content-type": contentType } = headers;
  const read = Buffer.concat(chunks);
  const body = read.subarray(0, maxBodyBytes);
  const isLong = read.byteLength > maxBodyBytes;
  return { type: "answer", status, retryAfter, contentType, body, ...(isLong && { isLong }) };
}

/** The beginning of the body; the rest is read and thrown away, so that the connection can be used again. */
async function readBody(response: IncomingMessage, chunks: Buffer[]): Promise<void> {
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (bytes <= maxBodyBytes) chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > 64 * maxBodyBytes) {
      response.destroy();
      break;
    }
  }
}

/** Codes of certificates whose authority is unknown. What else may be wrong with one is its owner's to mend. */
const unknownAuthority = /ISSUER_CERT|LEAF_SIGNATURE|SELF_SIGNED|CERT_UNTRUSTED/;

function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (unknownAuthority.test(code ?? "")) {
    // Node.js adds advice of its own, which is for its command line.
    const [reason] = error.message.split(";");
    return `its certificate is not trusted (${reason}): set NODE_EXTRA_CA_CERTS of the gateway to the PEM file of its authority`;
  }
  return error.message === "" ? (code ?? error.name) : error.message;
}

const bySystem: LookUp = (host) => lookup(host, { all: true });

/** Gives a connection those addresses alone that pass the check. */
function checkedLookup(lookUp: LookUp, isAllowed: (address: string) => boolean, refused: string): LookupFunction {
  return (host, { all, family }, callback) => {
    const isFamily = (one: LookupAddress) => typeof family !== "number" || family === 0 || family === one.family;
    lookUp(host).then(
      (found) => {
        const [first, ...others] = found.filter((one) => isFamily(one) && isAllowed(one.address));
        if (first === undefined) callback(new Error(refused), []);
        else if (all) callback(null, [first, ...others]);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}
