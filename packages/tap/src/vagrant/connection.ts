import { Metadata } from "@grpc/grpc-js";
import { GetVersionInfoResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import type { PolledServer } from "../polling/dial.ts";

/** A Vagrant server. It has no identity of its own, so the caller gives one. */
export function vagrantServer(identity: string): PolledServer {
  return {
    name: "server of Vagrant",
    clientOptions: {
      // A list has all jobs with their results: tens of KB for each job that sets up a project.
      "grpc.max_receive_message_length": 64 * 1024 * 1024,
      "grpc.max_send_message_length": -1,
      // When a job ends, the server drops output that was not read yet, so it must not have to wait for the tap.
      "grpc-node.flow_control_window": 8 * 1024 * 1024,
      // The server hangs up on clients that ping more often than every five minutes.
      "grpc.keepalive_time_ms": 360_000,
      "grpc.keepalive_timeout_ms": 20_000,
    },
    metadata: apiVersions(),
    proof: { name: "GetVersionInfo", path: VagrantService.getVersionInfo.path, request: Buffer.alloc(0) },
    identify: (answer) => ({ identity, version: GetVersionInfoResponse.decode(answer).info?.version ?? "" }),
  };
}

/** The API versions that the tap speaks. Every method but GetVersionInfo requires them. */
function apiVersions(): Metadata {
  const metadata = new Metadata();
  metadata.set("client-api-protocol", "1,1");
  return metadata;
}
