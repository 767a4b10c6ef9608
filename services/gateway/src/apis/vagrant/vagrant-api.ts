import { GetJobStreamRequest, GetLogStreamRequest } from "@tapedeck/proto/vagrant/vagrant";
import type { CallContext } from "../../call-context.ts";
import type { EncodedStream } from "../encoded-answer.ts";
import { notOffered } from "./errors.ts";
import { jobStream } from "./job-stream/job-stream.ts";
import { logStream } from "./log-stream/log-stream.ts";
import { type StreamMethod, tokenNames, type UnaryMethod, type VagrantApi, writeNames } from "./methods.ts";
import { type ReadDeps, vagrantReads } from "./reads.ts";
import { decoded, type RequestType } from "./requests.ts";
import { vagrantWrite, type WriteDeps } from "./writes.ts";

export type VagrantApiDeps = ReadDeps & WriteDeps;

/** Vagrant's API. Knows no transport. */
export function vagrantApi(deps: VagrantApiDeps): VagrantApi {
  const write = vagrantWrite(deps);
  return {
    unary: {
      ...vagrantReads(deps),
      ...byName(writeNames, (name) => async (request, context) => ({ bytes: await write(name, request, context) })),
      ...byName(tokenNames, () => refuseTokens),
    },
    streams: {
      getJobStream: stream(deps, GetJobStreamRequest, jobStream),
      getLogStream: stream(deps, GetLogStreamRequest, logStream),
    },
    runners: { runnerConfig: refuseRunners, runnerJobStream: refuseRunners },
  };
}

function byName<Name extends string>(
  names: readonly Name[],
  methodOf: (name: Name) => UnaryMethod,
): Readonly<Record<Name, UnaryMethod>> {
  return Object.fromEntries(names.map((name) => [name, methodOf(name)])) as Record<Name, UnaryMethod>;
}

function stream<Request>(
  deps: WriteDeps,
  type: RequestType<Request>,
  open: (deps: WriteDeps, request: Request, context: CallContext) => Promise<EncodedStream>,
): StreamMethod {
  return async (bytes, context) => open(deps, decoded(type, bytes), context);
}

function refuseRunners(): never {
  throw notOffered(
    "Tapedeck records a Vagrant server and has no runners of its own: a runner has to be connected to the server itself",
  );
}

async function refuseTokens(): Promise<never> {
  throw notOffered("Tapedeck hands out no Vagrant tokens, and no Vagrant server since 2.3.7 does");
}
