import type { ControlAnswer, ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { delay } from "@tapedeck/shared/sync/delay";
import { connectionItems, type ItemContent } from "../connection-items.ts";
import { parseAddress, portOpens, probePort } from "../port-probe.ts";
import type { BrokenChannels, Remembered, RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { wallClock } from "../wall-clock.ts";
import type { SkaffoldConnection } from "./connection.ts";

/** After a connection without a message: something else may listen there. Grows to `longest`. */
const strangerMs = { first: 500, longest: 30_000 };
/** A dying process closes its port about when it cuts its connections. */
const secondProbeMs = 20;
/** UNAVAILABLE of gRPC, which is loaded when something listens: most commands that a tap watches start no Skaffold. */
const unavailable = 14;

type ConnectionOutcome = { readonly hasSpoken: boolean; readonly hasProcessEnded: boolean };

/**
 * Records one Skaffold process after the other at an address. It does no harm (docs/upstreams/skaffold.md#readers-can-stop-skaffold): one
 * early connection per process, read at once and to the end, never reopened while the process lives. Broken channels are
 * remembered as long as the process may live, also by the next tap, because asking for them again may hang Skaffold.
 */
export const tap: UpstreamTap = { livesInCommand: true, run };

function run(options: TapOptions): RunningTap {
  const processes = new SkaffoldProcesses(options);
  return { done: processes.run(), control: (request) => processes.control(request) };
}

/** One process after the other at an address. */
class SkaffoldProcesses {
  readonly #options: TapOptions;
  readonly #endpoint: { readonly host: string; readonly port: number };
  readonly #address: string;
  readonly #now = wallClock();
  #current: SkaffoldConnection | undefined;
  #remembered: Remembered | undefined;

  constructor(options: TapOptions) {
    const { memory } = options;
    this.#options = options;
    this.#endpoint = parseAddress(options.address);
    this.#address = `${this.#endpoint.host}:${this.#endpoint.port}`;
    const remembered = memory?.load();
    this.#remembered = remembered?.address === this.#address ? remembered : undefined;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    if (this.#remembered !== undefined) await this.#closePredecessor(this.#remembered);
    for (let strangers = 0; !signal.aborted; ) {
      const wasClosed = await portOpens(this.#endpoint, signal);
      if (signal.aborted) return;
      if (wasClosed) this.#forgetBroken();
      const { hasSpoken, hasProcessEnded } = await this.#recordOnce();
      if (hasProcessEnded) this.#forgetBroken();
      strangers = hasProcessEnded || hasSpoken ? 0 : strangers + 1;
      const delayMs = Math.min(strangerMs.first * 2 ** (strangers - 1), strangerMs.longest);
      if (strangers > 0) await delay(delayMs, signal);
    }
  }

  async control(request: ControlRequest): Promise<ControlAnswer> {
    if (this.#current !== undefined) return this.#current.control(request);
    const message = "no connection to Skaffold";
    return { call: request.call, code: unavailable, message, response: Buffer.alloc(0) };
  }

  /** The process of a tap before this one has ended while no tap listened. Emitted again with every start. */
  async #closePredecessor({ connection }: Remembered): Promise<void> {
    if ((await probePort(this.#endpoint)) !== "refused") return;
    this.#forgetBroken();
    const value = { reason: "the process ended while no tap was listening", process_ended: true, unseen: true };
    this.#options.emit({ connection, at: this.#now(), what: { $case: "closed", value } });
  }

  async #recordOnce(): Promise<ConnectionOutcome> {
    const { emit, signal, skipChannels = [] } = this.#options;
    const items = connectionItems(emit, this.#now);
    const rememberAndEmit = (what: ItemContent) => {
      if (what.$case === "dialled") {
        this.#remember({ address: this.#address, connection: items.id, broken: this.#remembered?.broken });
      }
      items.emit(what);
    };
    const connectionOptions = {
      address: this.#address,
      skipChannels,
      broken: this.#remembered?.broken,
      emit: rememberAndEmit,
      onBroken: (broken: BrokenChannels | undefined) => this.#rememberBroken(broken),
    };
    // A program that was replaced while it ran can't load it: the event log file has what is missed.
    const loaded = await import("./connection.ts").catch(() => undefined);
    const connection = await loaded?.openConnection(connectionOptions, signal);
    if (connection === undefined) return { hasSpoken: false, hasProcessEnded: false };
    this.#current = connection;
    const leave = () => void connection.leave();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
    const reason = await connection.over;
    signal.removeEventListener("abort", leave);
    this.#current = undefined;
    const hasProcessEnded = await this.#isPortClosed();
    items.emit({ $case: "closed", value: { reason, process_ended: hasProcessEnded } });
    return { hasSpoken: connection.hasSpoken, hasProcessEnded };
  }

  async #isPortClosed(): Promise<boolean> {
    if ((await probePort(this.#endpoint)) === "refused") return true;
    await delay(secondProbeMs, this.#options.signal);
    return (await probePort(this.#endpoint)) === "refused";
  }

  #rememberBroken(broken: BrokenChannels | undefined): void {
    if (this.#remembered !== undefined) this.#remember({ ...this.#remembered, broken });
  }

  #forgetBroken(): void {
    if (this.#remembered?.broken !== undefined) this.#rememberBroken(undefined);
  }

  #remember(remembered: Remembered): void {
    this.#remembered = remembered;
    this.#options.memory?.save(remembered);
  }
}
