import { startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { openTestLog } from "./processes.ts";
import { startServiceProcess } from "./service-process.ts";

/** Two gateways, of which either delivers the sinks, with a log that the test writes and a receiver of theirs. */
export async function startTwoGateways(stack: AsyncDisposableStack) {
  const nats = stack.use(await startTestNats({ syncAlways: true }));
  const log = stack.use(await openTestLog(nats.url));
  const receiver = stack.use(await startReceiver());
  const env = {
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_NATS_SYNC_ALWAYS: "true",
    TAPEDECK_QUERY_ADDRESS: "127.0.0.1:1",
    TAPEDECK_INGEST_ADDRESS: "127.0.0.1:1",
    TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1",
    // By default each gateway links to itself.
    TAPEDECK_GATEWAY_PAGE_URL: "https://tapedeck.example",
  };
  const start = async () => stack.use(await startServiceProcess("gateway", env));
  return { log, receiver, gateways: [await start(), await start()] as const };
}
