import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { contextNames, headNames } from "../../call-context.ts";

const names = Object.values(contextNames);
const answerNames = [
  ...headNames,
  "link",
  "retry-after",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "www-authenticate",
];

/** Headers that let the calling page read the answer. Only for requests whose origin is allowed. */
export function corsHeaders({ origin }: IncomingHttpHeaders): OutgoingHttpHeaders {
  if (origin === undefined) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": answerNames.join(", "),
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers": ["authorization", "content-type", "last-event-id", ...names].join(", "),
    vary: "origin",
  };
}

/**
 * Headers that let a page with a refused origin read the refusal. They allow requests with a token, too: otherwise the
 * browser's preflight fails, and the page learns nothing of the reason.
 */
export function refusedCorsHeaders({ origin }: IncomingHttpHeaders): OutgoingHttpHeaders {
  if (origin === undefined) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": ["authorization", "content-type", "last-event-id", ...names].join(", "),
    vary: "origin",
  };
}

/** Whether a browser asks if its page may send a request. */
export function isPreflight({ method, headers }: { method: string; headers: IncomingHttpHeaders }): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}
