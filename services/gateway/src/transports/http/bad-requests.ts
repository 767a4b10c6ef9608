import type { Socket } from "node:net";
import { invalidArgument, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";

/** Answers bytes that did not become a request, or not in time. Their path is unknown. */
export function answerBadRequest({ code }: { readonly code: string }, socket: Socket): void {
  if (code === "ECONNRESET" || socket.destroyed) return;
  const [status, error] = refusalOf(code);
  const body = JSON.stringify({ error: toErrorBody(error) });
  const head = [`HTTP/1.1 ${status}`, "content-type: application/json", `content-length: ${Buffer.byteLength(body)}`];
  if (socket.writable) socket.write([...head, "connection: close", "", body].join("\r\n"));
  socket.destroySoon();
}

function refusalOf(code: string): readonly [status: string, error: TapedeckError] {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return ["408 Request Timeout", new TapedeckError("limit_exceeded", "the request took too long to arrive")];
    case "HPE_HEADER_OVERFLOW":
      return [
        "431 Request Header Fields Too Large",
        new TapedeckError("limit_exceeded", "path and headers of the request are too large together"),
      ];
    default:
      return ["400 Bad Request", invalidArgument("this is not an HTTP request")];
  }
}
