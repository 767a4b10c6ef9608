import type { SourceName } from "@tapedeck/shared/source";
import type { AnswerHead, CallContext } from "../call-context.ts";
import type { QueryClient, ReadState } from "../query-client.ts";
import { withSource } from "./resolve-source.ts";
import { stateHead } from "./state-head.ts";

/**
 * The collections that query keeps of the state of each upstream with an API here. On the wire the name begins with the
 * upstream: "rkt.pods".
 */
type CollectionNames = {
  readonly skaffold: "v1" | "v2";
  readonly rkt: "info" | "pods" | "images";
  readonly vagrant: "version" | "targets" | "projects" | "bases" | "boxes" | "runners" | "jobs" | "job_spans";
};

export type CollectionName<Upstream extends keyof CollectionNames> = CollectionNames[Upstream];

/** Rows in the order of query, which is the upstream's own. Each row is the message as it was recorded. */
export type CollectionRead = {
  readonly source: SourceName;
  readonly head: AnswerHead;
  readonly rows: ReadState["rows"];
};

/**
 * The rows of a collection whose key begins with `prefix`, for the source, session and moment of the call.
 * @throws TapedeckError the errors of resolveSource and of query
 */
export async function readCollection<Upstream extends keyof CollectionNames>(
  { query }: { readonly query: QueryClient },
  upstream: Upstream,
  collection: CollectionName<Upstream>,
  context: CallContext,
  prefix = "",
): Promise<CollectionRead> {
  return withSource(query, context, upstream, async (source, readState) => {
    const { head, rows } = await readState({
      workspace: context.workspace,
      source,
      session: context.session ?? "",
      at: context.at ?? "",
      min_position: context.minPosition ?? "",
      collection: `${upstream}.${collection}`,
      key_prefix: prefix,
    });
    return { source, head: stateHead(head), rows };
  });
}
