import { credentials } from "@grpc/grpc-js";
import {
  beginRemoval,
  listWorkspaces,
  maintainClient,
  queryClient,
  setRetention,
} from "@tapedeck/gateway/for-cli/maintain";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { CommandError } from "../../command-error.ts";
import { userHere } from "../../maintain/audit-here.ts";
import { dialRunning } from "../../maintain/here.ts";
import type { WorkspaceAdmin } from "./admin.ts";

const timeoutMs = 10_000;

/** Works on the Tapedeck that runs on a data folder. Goes past the gateway, which may require a token. */
export async function adminHere(data: string): Promise<WorkspaceAdmin> {
  await using stack = new AsyncDisposableStack();
  const { running, nats: connection, servicesKey } = stack.use(await dialRunning(data));
  const { ingestGrpc: ingest, queryGrpc: queryAddress } = running.addresses;
  if (ingest === undefined || queryAddress === undefined)
    throw new CommandError("the running `tapedeck up` is older than this command: restart it first.");
  const channel = credentials.createInsecure();
  const addresses = { ingest, queries: () => [queryAddress] };
  const services = stack.use(maintainClient(addresses, servicesKey, channel, { "grpc.enable_http_proxy": 0 }));
  const query = stack.use(queryClient(queryAddress, servicesKey, timeoutMs, channel));
  const deps = { nats: () => ({ connection }), query, services };
  const caller = (signal: AbortSignal) => ({ ...userHere(), signal });
  const owned = stack.move();
  return {
    list: () => said(() => listWorkspaces(deps, undefined)),
    async get(name) {
      const [found] = await said(() => listWorkspaces(deps, name));
      if (found === undefined) throw new CommandError(`nothing is recorded in the workspace "${name}".`);
      return found;
    },
    async *remove(name, signal) {
      try {
        yield* await beginRemoval(deps, name, caller(signal));
      } catch (cause) {
        throw inWords(cause);
      }
    },
    setRetention: (name, retention) =>
      said(() => setRetention(services, name, retention, caller(new AbortController().signal))),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function said<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw inWords(cause);
  }
}

function inWords(cause: unknown): unknown {
  return cause instanceof TapedeckError ? new CommandError(cause.message.replace(/\.?$/, "."), { cause }) : cause;
}
