import { GetInfoRequest, GetInfoResponse, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { PolledServer } from "../polling/dial.ts";

/** The api-service of rkt at an address. Its data directory distinguishes one host's pods from another's. */
export function rktServer(address: string): PolledServer {
  return {
    name: "api-service of rkt",
    clientOptions: {
      // A host of 5,000 pods answers with 2.5 MB, and rkt has no limit.
      "grpc.max_receive_message_length": -1,
      // Otherwise a host that is gone silently stays unnoticed for many minutes. rkt answers pings at any rate.
      "grpc.keepalive_time_ms": 60_000,
      "grpc.keepalive_timeout_ms": 20_000,
    },
    proof: {
      name: "GetInfo",
      path: PublicAPIService.getInfo.path,
      request: GetInfoRequest.encode({}).finish(),
    },
    identify: (answer) => {
      const { rkt_version: version = "", global_flags } = GetInfoResponse.decode(answer).info ?? {};
      // An old rkt does not report its directory.
      return { identity: global_flags?.dir || address, version };
    },
  };
}
