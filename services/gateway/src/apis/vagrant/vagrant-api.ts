import { GetJobStreamRequest, GetLogStreamRequest } from "@tapedeck/proto/vagrant/vagrant";
import type { CallContext } from "../../call-context.ts";
import type { EncodedStream } from "../encoded-answer.ts";
import { notOffered } from "./errors.ts";
import { jobStream } from "./job-stream/job-stream.ts";
import { logStream } from "./log-stream/log-stream.ts";
import {
  runnerNames,
  type StreamMethod,
  tokenNames,
  type UnaryMethod,
  type VagrantApi,
  writeNames,
} from "./methods.ts";
import { type ReadDeps, vagrantReads } from "./reads.ts";
import { decoded, type RequestType } from "./requests.ts";
import { type RunnerDeps, runnerStream } from "./runner-streams.ts";
import { vagrantWrite, type WriteDeps } from "./writes.ts";

export type VagrantApiDeps = ReadDeps & RunnerDeps;

/** Vagrant's API. Knows no transport. */
export function vagrantApi(deps: VagrantApiDeps): VagrantApi {
  const write = vagrantWrite(deps);
  return {
    unary: {
      ...vagrantReads(deps),
      ...byName(
        writeNames,
        (name): UnaryMethod =>
          (request, context) =>
            write(name, request, context),
      ),
      ...byName(tokenNames, (): UnaryMethod => refuseTokens),
    },
    streams: {
      getJobStream: stream(deps, GetJobStreamRequest, jobStream),
      getLogStream: stream(deps, GetLogStreamRequest, logStream),
    },
    runners: byName(runnerNames, (name) => runnerStream(deps, name)),
  };
}

function byName<Name extends string, Method>(
  names: readonly Name[],
  methodOf: (name: Name) => Method,
): Readonly<Record<Name, Method>> {
  return Object.fromEntries(names.map((name) => [name, methodOf(name)])) as Record<Name, Method>;
}

function stream<Request>(
  deps: WriteDeps,
  type: RequestType<Request>,
  open: (deps: WriteDeps, request: Request, context: CallContext) => Promise<EncodedStream>,
): StreamMethod {
  return async (bytes, context) => open(deps, decoded(type, bytes), context);
}

async function refuseTokens(): Promise<never> {
  throw notOffered("Tapedeck hands out no Vagrant tokens, and no Vagrant server since 2.3.7 does");
}
