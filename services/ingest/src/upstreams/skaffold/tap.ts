import { status } from "@grpc/grpc-js";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ulid } from "ulid";
import type { RunningTap, TapOptions, UpstreamTap } from "../upstream.ts";
import { type Connection, openConnection } from "./connection.ts";
import { type Channel, channels } from "./methods.ts";
import { parseAddress, portOpens, probePort, sleep } from "./port-probe.ts";
import { wallClock } from "./wall-clock.ts";

/** After a connection that said nothing: something else may listen there. Grows to the second one. */
const strangerMs = { first: 500, longest: 30_000 };

type Heard = { readonly spoke: boolean; readonly processEnded: boolean; readonly broken: ReadonlySet<Channel> };

/**
 * Listens to one Skaffold process after the other on an address. It does no harm (see the notes of both .proto files):
 * one early connection per process, read at once and to the end, never reopened while the process lives.
 */
export const tap: UpstreamTap = { run };

function run(options: TapOptions): RunningTap {
  const { emit, signal, skipChannels = [] } = options;
  const address = parseAddress(options.address);
  const wanted = channels.filter((channel) => !skipChannels.includes(channel));
  const now = wallClock();
  let current: Connection | undefined;

  async function listen(): Promise<void> {
    let avoid: ReadonlySet<Channel> = new Set();
    for (let strangers = 0; !signal.aborted; ) {
      const wasClosed = await portOpens(address, signal);
      if (signal.aborted) return;
      if (wasClosed) avoid = new Set();
      const heard = await listenOnce(wanted.filter((channel) => !avoid.has(channel)));
      // Kept through all connections to the process: to ask for a broken channel again may hang it.
      avoid = heard.processEnded ? new Set() : avoid.union(heard.broken);
      strangers = heard.processEnded || heard.spoke ? 0 : strangers + 1;
      const pause = Math.min(strangerMs.first * 2 ** (strangers - 1), strangerMs.longest);
      if (strangers > 0) await sleep(pause, signal);
    }
  }

  async function listenOnce(open: readonly Channel[]): Promise<Heard> {
    const id = ulid();
    const tell = (what: NonNullable<Item["what"]>) => emit({ connection: id, at: now(), what });
    const connection = await openConnection({ ...address, channels: open, emit: tell });
    if (connection === undefined) return { spoke: false, processEnded: false, broken: new Set() };
    current = connection;
    const leave = () => void connection.leave();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
    const reason = await connection.over;
    signal.removeEventListener("abort", leave);
    current = undefined;
    const processEnded = await isProcessGone();
    tell({ $case: "closed", value: { reason, process_ended: processEnded } });
    return { spoke: connection.spoke(), processEnded, broken: connection.broken };
  }

  /** A dying process closes its port about when it cuts its connections, so a second look is worth it. */
  async function isProcessGone(): Promise<boolean> {
    if ((await probePort(address)) === "refused") return true;
    await sleep(20, signal);
    return (await probePort(address)) === "refused";
  }

  async function control(request: ControlRequest): Promise<ControlAnswer> {
    if (current !== undefined) return current.control(request);
    const message = "no connection to Skaffold";
    return { call: request.call, code: status.UNAVAILABLE, message, response: Buffer.alloc(0) };
  }

  return { done: listen(), control };
}
