import { status } from "@grpc/grpc-js";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { channels } from "@tapedeck/shared/skaffold/methods";
import { wallClock } from "@tapedeck/shared/time/wall-clock";
import { ulid } from "ulid";
import type { BrokenChannels, Remembered, RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { type Connection, openConnection } from "./connection.ts";
import { parseAddress, portOpens, probePort, sleep } from "./port-probe.ts";

/** After a connection that said nothing: something else may listen there. Grows to the second one. */
const strangerMs = { first: 500, longest: 30_000 };

type Heard = { readonly spoke: boolean; readonly processEnded: boolean };

/**
 * Listens to one Skaffold process after the other on an address. It does no harm
 * (docs/upstreams/skaffold.md#readers-can-stop-skaffold):
 * one early connection per process, read at once and to the end, never reopened while the process lives. What broke is
 * remembered as long as the process may live, also by the next tap: to ask for it again may hang Skaffold.
 */
export const tap: UpstreamTap = { livesInCommand: true, run };

function run(options: TapOptions): RunningTap {
  const { emit, signal, skipChannels = [], memory } = options;
  const address = parseAddress(options.address);
  const place = `${address.host}:${address.port}`;
  const wanted = channels.filter((channel) => !skipChannels.includes(channel));
  const now = wallClock();
  let current: Connection | undefined;
  let known = memory?.load();
  if (known?.address !== place) known = undefined;

  async function listen(): Promise<void> {
    if (known !== undefined) await closePredecessor(known);
    for (let strangers = 0; !signal.aborted; ) {
      const wasClosed = await portOpens(address, signal);
      if (signal.aborted) return;
      if (wasClosed) forgetBroken();
      const heard = await listenOnce();
      if (heard.processEnded) forgetBroken();
      strangers = heard.processEnded || heard.spoke ? 0 : strangers + 1;
      const pause = Math.min(strangerMs.first * 2 ** (strangers - 1), strangerMs.longest);
      if (strangers > 0) await sleep(pause, signal);
    }
  }

  /** The process that a tap before this one listened to has gone while nobody did. Told again with every start. */
  async function closePredecessor({ connection }: Remembered): Promise<void> {
    if ((await probePort(address)) !== "refused") return;
    forgetBroken();
    const value = { reason: "the process ended while nobody was listening", process_ended: true, unseen: true };
    emit({ connection, at: now(), what: { $case: "closed", value } });
  }

  function remember(remembered: Remembered): void {
    known = remembered;
    memory?.save(remembered);
  }

  function rememberBroken(broken: BrokenChannels | undefined): void {
    if (known !== undefined) remember({ ...known, broken });
  }

  function forgetBroken(): void {
    if (known?.broken !== undefined) rememberBroken(undefined);
  }

  async function listenOnce(): Promise<Heard> {
    const id = ulid();
    const tell = (what: NonNullable<Item["what"]>) => {
      if (what.$case === "dialled") remember({ address: place, connection: id, broken: known?.broken });
      emit({ connection: id, at: now(), what });
    };
    const connection = await openConnection({
      ...{ ...address, channels: wanted, emit: tell, signal },
      ...{ broken: known?.broken, onBroken: rememberBroken },
    });
    if (connection === undefined) return { spoke: false, processEnded: false };
    current = connection;
    const leave = () => void connection.leave();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
    const reason = await connection.over;
    signal.removeEventListener("abort", leave);
    current = undefined;
    const processEnded = await isProcessGone();
    tell({ $case: "closed", value: { reason, process_ended: processEnded } });
    return { spoke: connection.spoke(), processEnded };
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
