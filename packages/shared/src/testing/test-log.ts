import { connect } from "nats";
import { type OpenLogOptions, openLog } from "../log/jetstream.ts";
import { streamOf } from "../log/subjects.ts";
import { type SourceName, sourceName } from "../source.ts";
import { startTestNats } from "./nats.ts";

/** The workspace of `testSources`. */
export const testWorkspace = "acme";

/** The stream of its log. */
export const testStream = streamOf(testWorkspace);

const sourceOf = (developer: string) =>
  sourceName({ workspace: testWorkspace, developer, project: "shop", upstream: "skaffold" });

export const testSources: readonly SourceName[] = ["alice", "bob", "carol", "dave"].map(sourceOf);

/** A log on a NATS server of its own, with its connection; all of it ends with the log. */
export async function startTestLog(options: Partial<OpenLogOptions> = {}) {
  const server = await startTestNats();
  const nc = await connect({ servers: server.url });
  const log = await openLog(nc, { workspace: testWorkspace, syncKnown: true, ...options });
  return {
    ...log,
    nc,
    async [Symbol.asyncDispose]() {
      await log[Symbol.asyncDispose]();
      await nc.close();
      await server[Symbol.asyncDispose]();
    },
  };
}
