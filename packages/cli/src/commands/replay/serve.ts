import {
  type SkaffoldServer,
  type SkaffoldServerOptions,
  startSkaffoldServer,
} from "@tapedeck/gateway/for-cli/skaffold-server";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sourceParts } from "@tapedeck/shared/source";
import type { Tape } from "./tape.ts";
import { tapeQuery } from "./tape-query.ts";

type Addresses = Pick<SkaffoldServerOptions, "grpc" | "http">;

/** Serves Skaffold's two APIs from a tape, as the gateway serves them from the log. */
export function serveTape(tape: Tape, addresses: Addresses): Promise<SkaffoldServer> {
  return startSkaffoldServer({
    ...addresses,
    workspace: sourceParts(tape.source).workspace,
    log: tape.reader,
    query: tapeQuery(tape),
    control: {
      call: async () => {
        throw new TapedeckError("upstream_away", "this is a recorded session: nothing can be built or deployed in it");
      },
    },
  });
}
