import { errorIn } from "./error.ts";

/** Values of a URL's parameters; what is undefined is left out, and a list is repeated. */
export type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>;

export type Http = {
  /**
   * @throws TapedeckError if the gateway refuses; TypeError (of fetch) without an answer; Error if another server answers
   */
  readonly get: (path: string, parameters: Parameters, signal?: AbortSignal) => Promise<unknown>;
  /** Why a WebSocket was refused, which browsers hide from scripts; undefined if waiting may help. */
  readonly refusal: (signal: AbortSignal) => Promise<Error | undefined>;
};

/** `base`: without a slash at its end. */
export function httpAt(base: string, token: string | undefined): Http {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ask = (url: string, signal: AbortSignal | undefined) =>
    fetch(url, { headers, ...(signal !== undefined && { signal }) });

  return {
    async get(path, parameters, signal) {
      const query = new URLSearchParams();
      for (const [name, value = []] of Object.entries(parameters)) {
        for (const one of typeof value === "string" ? [value] : value) query.append(name, one);
      }
      const url = `${base}${path}${query.size === 0 ? "" : `?${query}`}`;
      const response = await ask(url, signal);
      const body: unknown = await response.json().catch(() => undefined);
      if (response.ok && body !== undefined) return body;
      throw errorIn(body, response.headers.get("retry-after")) ?? notTapedeck(url, response.status);
    },
    async refusal(signal) {
      const url = `${base}/api/v1/ws`;
      try {
        const response = await ask(url, signal);
        const body: unknown = await response.json().catch(() => undefined);
        // 426: it would be let in, by WebSocket.
        if (response.status >= 500 || response.status === 426 || response.status === 429) return undefined;
        return errorIn(body) ?? notTapedeck(url, response.status);
      } catch {
        return undefined; // no server, or a page without permission
      }
    },
  };
}

function notTapedeck(url: string, status: number): Error {
  return new Error(`${url} answered ${status}, and not as a Tapedeck does`);
}
