import { grpc } from "./grpc.ts";
import { ndjson, serverSentEvents } from "./http-stream.ts";
import type { Transport } from "./transport.ts";
import { websocket } from "./websocket.ts";

/** Every transport of subscriptions. The tests hold for all of them. */
export const transports: readonly Transport[] = [websocket, serverSentEvents, ndjson, grpc];
