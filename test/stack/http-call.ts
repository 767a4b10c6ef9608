import { type IncomingHttpHeaders, request } from "node:http";

export type HttpAnswer = { readonly status: number; readonly body: string; readonly headers: IncomingHttpHeaders };

/** Sends one request as given: fetch does not let a test choose Host, or send a body with any method. */
export function httpCall(
  address: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): Promise<HttpAnswer> {
  const [host = "", port = ""] = address.split(":");
  return new Promise((resolve, reject) => {
    const call = request({ host, port: Number(port), method, path, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers }));
    });
    call.once("error", reject);
    call.end(body);
  });
}
