import { credentials } from "@grpc/grpc-js";
import { QueryRoutes, queryClient } from "@tapedeck/gateway/for-cli/maintain";
import { CommandError } from "../command-error.ts";
import type { RunningHere } from "./here.ts";

/** A proxy of the user's is not for this machine's own addresses. */
export const servicesOptions = { "grpc.enable_http_proxy": 0 };
export const servicesChannel = credentials.createInsecure();

const timeoutMs = 10_000;

/** The queries of the `up` that runs here, also those that have taken workspaces over, and the address of its ingest. */
export async function routesHere({ running, nats, servicesKey }: RunningHere) {
  const { ingestGrpc: ingest, queryGrpc: address } = running.addresses;
  if (ingest === undefined || address === undefined)
    throw new CommandError("the running `tapedeck up` is older than this command: restart it first.");
  const dial = (to: string) => queryClient(to, servicesKey, timeoutMs, servicesChannel);
  const routes = new QueryRoutes({ address, dial });
  // The map as it is now: a command is over soon.
  const over = new AbortController();
  await routes.follow({ opened: Promise.resolve(), nats: () => ({ connection: nats }) }, over.signal);
  over.abort();
  return { ingest, routes };
}
