import {
  beginRemoval,
  listWorkspaces,
  maintainClient,
  routedQuery,
  setRetention,
} from "@tapedeck/gateway/for-cli/maintain";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { CommandError } from "../../command-error.ts";
import { userHere } from "../../maintain/audit-here.ts";
import { dialRunning } from "../../maintain/here.ts";
import { routesHere, servicesChannel, servicesOptions } from "../../maintain/queries-here.ts";
import type { WorkspaceAdmin } from "./admin.ts";

/** Works on the Tapedeck that runs on a data folder. Goes past the gateway, which may require a token. */
export async function adminHere(data: string): Promise<WorkspaceAdmin> {
  await using stack = new AsyncDisposableStack();
  const machine = stack.use(await dialRunning(data));
  const { nats: connection, servicesKey } = machine;
  const { ingest, routes } = await routesHere(machine);
  const query = stack.use(routedQuery(routes));
  const addresses = { ingest, queries: () => routes.addresses() };
  const services = stack.use(maintainClient(addresses, servicesKey, servicesChannel, servicesOptions));
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
