import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { QueryClient, ReadState } from "../../query-client.ts";
import { resolveSource } from "../resolve-source.ts";
import { stateHead } from "../state-head.ts";

/** What query keeps of a Vagrant server, by query.proto's names without "vagrant.". */
export type Collection = "version" | "targets" | "projects" | "bases" | "boxes" | "runners" | "jobs" | "job_spans";

/** Rows as query gives them: in the upstream's order, each the message as it was recorded. */
export type Read = {
  readonly source: Source;
  readonly head: AnswerHead;
  readonly rows: ReadState["rows"];
};

/**
 * The rows of a collection whose key begins with `prefix`, of the source, session and moment that the call means.
 * @throws TapedeckError those of resolveSource and of query
 */
export async function read(
  { query }: { readonly query: QueryClient },
  collection: Collection,
  context: CallContext,
  prefix = "",
): Promise<Read> {
  const source = await resolveSource(query, context, "vagrant");
  const { head, rows } = await query.readState({
    workspace: context.workspace,
    source: source.source,
    session: context.session ?? "",
    at: context.at ?? "",
    min_position: context.minPosition ?? "",
    collection: `vagrant.${collection}`,
    key_prefix: prefix,
  });
  return { source, head: stateHead(head), rows };
}
