import { openErasures } from "@tapedeck/shared/log/erasures/erasure-store";
import { sinkKeyOf, sinkSubjects } from "@tapedeck/shared/sinks/sink-store";
import { startInterval, startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { NatsConnection, Subscription } from "nats";
import type { SinkDefinition } from "../definition.ts";
import { RunningSink, type RunningSinkDeps } from "./running-sink.ts";

/** A sink that is to be delivered. */
export type ActiveSink = {
  readonly workspace: string;
  readonly sink: string;
  readonly definition: SinkDefinition;
  /** Changes when its cursor was set by hand. */
  readonly generation: string | undefined;
};

export type RunningSinksDeps = RunningSinkDeps & { readonly connection: NatsConnection };

type Running = { readonly fingerprint: string; readonly running: RunningSink; readonly sink: ActiveSink };

/** An erasure writes its progress often. */
const erasedMs = 500;
const recountMs = 200;

/** Delivers sinks under one lease. */
export class RunningSinks implements AsyncDisposable {
  readonly #deps: RunningSinksDeps;
  readonly #running = new Map<string, Running>();
  readonly #reports: Timer;
  readonly #subscriptions: readonly Subscription[];
  #setting: Promise<void> = Promise.resolve();
  #erased: Timer | undefined;
  readonly #recounts = new Map<string, Timer>();

  constructor(deps: RunningSinksDeps) {
    this.#deps = deps;
    this.#reports = startInterval(() => void this.#report(), deps.times.reportMs).unref();
    this.#subscriptions = [
      this.#hearParked(),
      deps.connection.subscribe(openErasures, { callback: () => this.#erasing() }),
    ];
  }

  get all(): readonly Running[] {
    return [...this.#running.values()];
  }

  /** From now on these are delivered, and no others. Calls take their turns. */
  set(sinks: readonly ActiveSink[]): Promise<void> {
    this.#setting = this.#setting.then(() => this.#set(sinks));
    return this.#setting;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    stopTimer(this.#reports);
    stopTimer(this.#erased);
    for (const timer of this.#recounts.values()) stopTimer(timer);
    for (const one of this.#subscriptions) if (!this.#deps.connection.isClosed()) one.unsubscribe();
    await this.set([]);
  }

  async #set(sinks: readonly ActiveSink[]): Promise<void> {
    const requested = new Map(sinks.map((sink) => [keyOf(sink), { sink, fingerprint: JSON.stringify(sink) }]));
    const ended = [...this.#running].filter(
      ([key, { fingerprint }]) => requested.get(key)?.fingerprint !== fingerprint,
    );
    for (const [key] of ended) this.#running.delete(key);
    await Promise.all(ended.map(([, { running }]) => running[Symbol.asyncDispose]()));
    for (const [key, { sink, fingerprint }] of requested) {
      if (this.#running.has(key)) continue;
      const { workspace, sink: name, definition } = sink;
      const running = new RunningSink({ workspace, sink: name }, definition, this.#deps);
      this.#running.set(key, { fingerprint, running, sink });
    }
  }

  async #report(): Promise<void> {
    // A removal of parked events may not have been heard, and a sink that is full would wait for it for ever.
    for (const { running } of this.all) await running.recount();
  }

  #hearParked(): Subscription {
    return this.#deps.connection.subscribe(sinkSubjects("parked"), {
      callback: (error, message) => {
        // What is parked is parked here, and counted.
        const key = error === null && message.data.byteLength === 0 ? sinkKeyOf(message.subject) : undefined;
        if (key !== undefined) this.#unparked(keyOf(key));
      },
    });
  }

  /** Several are retried or dropped at a time. */
  #unparked(key: string): void {
    if (this.#recounts.has(key)) return;
    const timer = startTimer(() => {
      this.#recounts.delete(key);
      void this.#running.get(key)?.running.recount();
    }, recountMs).unref();
    this.#recounts.set(key, timer);
  }

  #erasing(): void {
    this.#erased ??= startTimer(() => {
      this.#erased = undefined;
      for (const { running } of this.all) void running.erased();
    }, erasedMs).unref();
  }
}

function keyOf({ workspace, sink }: { readonly workspace: string; readonly sink: string }): string {
  return `${workspace}/${sink}`;
}
