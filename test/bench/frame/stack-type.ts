import type { Log } from "@tapedeck/shared/log/jetstream";
import type { NatsConnection } from "nats";
import type { ServiceName, ServiceProcess } from "../../faults/service-process.ts";
import type { Processes } from "./processor-time.ts";

/** Servers as in production (every message and every commit on disk), and the services that a part needs. */
export type Stack = AsyncDisposable & {
  readonly nats: { readonly url: string; readonly connection: NatsConnection };
  readonly log: Log;
  /** A connection string. */
  readonly database: string;
  readonly services: Readonly<Partial<Record<ServiceName, ServiceProcess>>>;
  /** Gateway, "host:port". */
  readonly grpc: string;
  readonly http: string;
  /** The process ids of all of Tapedeck: services and servers. */
  readonly processes: Processes;
  /** A Node process that does nothing. */
  readonly idlePid: number;
  /**
   * The longest time in ms that each service's event loop was blocked since the last call, and that of an idle process.
   */
  readonly loopHolds: () => Promise<Readonly<Record<string, number>>>;
};
