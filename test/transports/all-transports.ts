import { grpc } from "./grpc.ts";
import { ndjson, serverSentEvents } from "./http-stream.ts";
import type { Transport } from "./transport.ts";
import { websocket } from "./websocket.ts";

/** Every way to read a subscription. What is said of one is said of all. */
export const transports: readonly Transport[] = [websocket, serverSentEvents, ndjson, grpc];
