import { testParts } from "./testing/test-parts.ts";

// Four shards on one nats-server, with services in processes of their own. Every frame has to be recorded once.
testParts(["shards"]);
