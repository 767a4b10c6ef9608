import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { contextNames } from "../../call-context.ts";

const names = Object.values(contextNames);
const answerNames = [
  "tapedeck-position",
  "tapedeck-session",
  "tapedeck-session-ended",
  "tapedeck-not-heard-since",
  "link",
  "retry-after",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "www-authenticate",
];

/** What lets the page that asks read the answer. Only for requests whose origin is allowed. */
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
 * What lets a page whose origin is refused read just that, and not its browser's guess. It may ask, with a token as well: a
 * browser asks first, and tells a page nothing of a refusal then.
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

/** A browser asks whether its page may ask. */
export function isPreflight({ method, headers }: { method: string; headers: IncomingHttpHeaders }): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}
