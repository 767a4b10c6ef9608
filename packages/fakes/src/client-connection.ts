import { Client, credentials } from "@grpc/grpc-js";

/** A connection that no other client shares, and that comes back at once when a fake does. */
export function connectionTo(address: string): Client {
  return new Client(address, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 20,
    "grpc.max_reconnect_backoff_ms": 20,
  });
}
