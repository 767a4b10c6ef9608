import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { skaffoldMethods } from "@tapedeck/gateway/apis/skaffold/methods";
import { openApiDocument } from "@tapedeck/gateway/transports/http/routes/openapi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { workspaceScenario } from "../stack/two-workspaces.ts";

// What a caller may read is for that caller: neither a browser nor a proxy may keep an answer, or a refusal, for others.

const cleanup = new AsyncDisposableStack();
let tokens: TokenStack;
/** Every way to sign in, and none. */
const callers = new Map<string, Record<string, string>>();

beforeAll(async () => {
  tokens = cleanup.use(await startTokenStack());
  await tokens.on.seed(workspaceScenario("acme").events);
  const admin = await tokens.token("acme", ["admin"]);
  const own = { origin: `http://${tokens.on.stack.http}` };
  const signedIn = await tokens.on.stack.httpCall(
    "POST",
    "/api/v1/sign-in",
    own,
    JSON.stringify({ token: admin.text }),
  );
  callers.set("a token", bearing(admin.text));
  callers.set("the page's cookie", { cookie: `${signedIn.headers["set-cookie"]}`.split(";")[0] ?? "", ...own });
  callers.set("nobody", {});
});
afterAll(() => cleanup.disposeAsync());

const { paths } = openApiDocument() as { paths: Record<string, Record<string, object>> };
const described = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, "none")] as const),
);
const ofSkaffold = skaffoldMethods.map(({ http: { verb, path } }) => [verb, path] as const);
const others = [
  ["GET", "/about"],
  ["GET", "/metrics"],
  ["GET", "/api/v1/nothing"],
  ["POST", "/api/v1/state"],
  ["GET", "/api/v1/state?source=nobody/nothing"],
  ["GET", "/api/v1/events?after=soon"],
] as const;
const forms = ["application/json", "application/x-ndjson", "text/event-stream", "application/cloudevents-batch+json"];

describe.each(["a token", "the page's cookie", "nobody"])("answers to %s", (caller) => {
  it.each([...described, ...ofSkaffold, ...others])("%s %s must not be kept", async (method, path) => {
    for (const accept of forms) {
      const { statusCode, headers } = await head(method, path, { ...callers.get(caller), accept });
      expect([accept, statusCode, headers["cache-control"]]).toEqual([accept, expect.any(Number), "no-store"]);
    }
  });
});

/** The head of the answer: streams have no end. */
async function head(method: string, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const [host = "", port = ""] = tokens.on.stack.http.split(":");
  const request = get({ host, port, method, path, headers, agent: false });
  request.on("error", () => {});
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.on("error", () => {}).destroy();
  return response;
}
