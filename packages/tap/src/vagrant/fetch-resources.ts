import { status } from "@grpc/grpc-js";
import type { Resource } from "@tapedeck/proto/tapedeck/v1/observation";
import type { PolledConnection } from "../polling/connection.ts";
import type { ResourceMethods } from "./methods.ts";

export type FetchedResources =
  | {
      readonly resources: readonly Resource[];
      /** Ids that the server does not know, where it has no list. */
      readonly missing: readonly string[];
      readonly failed?: never;
    }
  | {
      readonly failed: { readonly code: number; readonly message: string };
      readonly resources?: never;
      readonly missing?: never;
    };

export type FetchOptions = {
  readonly connection: Pick<PolledConnection, "call">;
  readonly methods: ResourceMethods;
  /** For each answer. */
  readonly timeoutMs: number;
  /** The ids of a kind that the server can't list. */
  readonly idsWithoutList: () => Promise<readonly string[]>;
};

/** Fetches every resource of a kind, one call after the other. Any answer but OK and NOT_FOUND fails the whole kind. */
export async function fetchResources(options: FetchOptions): Promise<FetchedResources> {
  const { connection, methods, timeoutMs } = options;
  const { kind, list, get, resourceIn } = methods;
  const resources: Resource[] = [];
  const missing: string[] = [];
  try {
    for (const id of list === undefined ? await options.idsWithoutList() : await listedIds(list, options)) {
      const { code, message, response } = await connection.call(get.path, get.request(id), timeoutMs);
      if (code === status.NOT_FOUND) {
        // A listed resource has gone since the list; the next list shows that.
        if (list === undefined) missing.push(id);
        continue;
      }
      if (code !== status.OK) throw new CallFailed(code, message);
      const bytes = resourceIn(response);
      if (bytes !== undefined) resources.push({ id, bytes });
    }
    return { resources, missing };
  } catch (cause) {
    const code = cause instanceof CallFailed ? cause.code : status.INTERNAL;
    return { failed: { code, message: `${kind}: ${cause instanceof Error ? cause.message : cause}` } };
  }
}

async function listedIds(
  { path, ids }: NonNullable<ResourceMethods["list"]>,
  { connection, timeoutMs }: FetchOptions,
): Promise<readonly string[]> {
  const { code, message, response } = await connection.call(path, Buffer.alloc(0), timeoutMs);
  if (code !== status.OK) throw new CallFailed(code, message);
  return ids(response);
}

/** A call that `fetchResources` needs was not answered with OK. */
export class CallFailed extends Error {
  override readonly name = "CallFailed";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
