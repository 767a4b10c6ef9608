import type { SourceName } from "@tapedeck/shared/source";
import type { SkaffoldClient } from "../skaffold/client.ts";
import { infoOf, skaffoldRefusal } from "../stack/error-info.ts";
import type { HttpAnswer } from "../stack/http-call.ts";
import type { Stack } from "../stack/stack.ts";
import { bearing } from "../stack/token-stack.ts";
import { sourceIn, type Workspace } from "./time-travel-scenarios.ts";

/** The changing part of an answer, or its refusal. */
export type Answer =
  | { readonly gist: unknown }
  | { readonly refused: string; readonly earliest?: string; readonly latest?: string };

/** The clients for calls: bytes over gRPC, or HTTP; and who calls. */
export type ApiAccess = {
  readonly client: SkaffoldClient;
  readonly stack: Pick<Stack, "httpCall">;
  readonly workspace: Workspace;
  readonly token: string;
};

/** One call that returns a state. */
export type Call = {
  readonly name: string;
  /** The source of the state, or of the list's items, in `acme`. Other workspaces have one of the same name. */
  readonly source: SourceName;
  /** The expected gist in each of the three chapters. */
  readonly gists: readonly [unknown, unknown, unknown];
  /** Before the first event a list is empty instead of refused. */
  readonly isList?: true;
  readonly ask: (access: ApiAccess, at: string | undefined) => Promise<Answer>;
};

export type Method<Request, Response> = {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
};

export const asIs = (bytes: Buffer) => bytes;
/** A method of an API without types here. */
export const method = <Request, Response>(
  path: string,
  request: { encode(request: Request): { finish(): Uint8Array } },
  response: { decode(bytes: Uint8Array): Response },
): Method<Request, Response> => ({
  path,
  requestSerialize: (message) => Buffer.from(request.encode(message).finish()),
  responseDeserialize: (bytes) => response.decode(bytes),
});

/** A gRPC call with its source and position in the metadata. */
export function grpc<Request, Response>(
  source: SourceName,
  { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
  request: Request,
  gistOf: (response: Response) => unknown,
  gists: Call["gists"],
): Call {
  return {
    name: path,
    source,
    gists,
    async ask({ client, workspace, token }, at) {
      const head = {
        ...bearing(token),
        "client-api-protocol": "1,1",
        "tapedeck-source": sourceIn(workspace, source),
        ...(at !== undefined && { "tapedeck-at": at }),
      };
      const answer = await client.unary(path, requestSerialize(request), head);
      if (answer.code === 0) return { gist: gistOf(responseDeserialize(answer.bytes)) };
      const info = infoOf(answer);
      return info === undefined ? { gist: answer.message } : { refused: info.reason, ...placesOf(info.metadata) };
    },
  };
}

export function http<Body>(
  source: SourceName,
  path: string,
  gistOf: (body: Body) => unknown,
  refusalOf: (answer: HttpAnswer) => Answer,
  gists: Call["gists"],
): Call {
  return {
    name: `GET ${path}`,
    source,
    gists,
    async ask({ stack, workspace, token }, at) {
      const query = new URLSearchParams({ source: sourceIn(workspace, source), ...(at !== undefined && { at }) });
      const answer = await stack.httpCall("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`, bearing(token));
      return answer.status === 200 ? { gist: gistOf(JSON.parse(answer.body) as Body) } : refusalOf(answer);
    },
  };
}

function placesOf({ earliest, latest }: Readonly<Record<string, string>>) {
  return { ...(earliest !== undefined && { earliest }), ...(latest !== undefined && { latest }) };
}

export function ofSkaffold(answer: HttpAnswer): Answer {
  const { info } = skaffoldRefusal(answer);
  return { refused: info?.reason ?? "", ...placesOf(info?.metadata ?? {}) };
}

export function ofOurs({ body }: HttpAnswer): Answer {
  const { error } = JSON.parse(body) as { error: { code: string } & Record<string, string> };
  return { refused: error.code, ...placesOf(error) };
}
