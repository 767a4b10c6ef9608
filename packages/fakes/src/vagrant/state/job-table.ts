import { status } from "@grpc/grpc-js";
import type { Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { Panic, Refusal } from "../status.ts";
import type { ServerDatabase } from "./database.ts";
import type { Output } from "./output.ts";
import { unreadableBecause } from "./queue.ts";
import { notFound } from "./records.ts";

type Known = {
  output?: Output;
  /** The limit of 2 minutes without a heartbeat is running. */
  isTimed: boolean;
  readonly watchers: Set<() => void>;
};

/** The jobs that one process knows, which are rows of the database, and who watches them. */
export class JobTable {
  readonly #rows: Map<string, Job>;
  readonly #known = new Map<string, Known>();
  readonly #watchersOfAll = new Set<(id: string) => void>();

  constructor({ jobs }: ServerDatabase) {
    this.#rows = jobs;
  }

  know(id: string, isTimed: boolean): void {
    this.#known.set(id, { isTimed, watchers: new Set() });
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  entry(id: string): Known {
    const found = this.#known.get(id);
    if (found === undefined) throw new Refusal(status.NOT_FOUND, "job not found");
    return found;
  }

  /** In the order in which the process learned of them. */
  known(): string[] {
    return [...this.#known.keys()];
  }

  ids(): string[] {
    return this.known().toSorted();
  }

  /** NOT_FOUND unless the process knows it and its row is there. */
  read(id: string): Job {
    this.entry(id);
    const job = this.#rows.get(id);
    if (job === undefined) throw notFound("job");
    const reason = unreadableBecause(job);
    if (reason !== undefined) throw new Panic(`reading a job with ${reason}`);
    return job;
  }

  /** The job, which must be in this state. */
  inState(id: string, state: Job_State, what: string): Job {
    const job = this.read(id);
    if (job.state !== state) throw new Error(`cannot ${what} job ${id} in state ${job.state}`);
    return job;
  }

  change(id: string, fields: Partial<Job>): void {
    this.#rows.set(id, { ...this.read(id), ...fields });
    this.notify(id);
  }

  notify(id: string): void {
    for (const changed of [...this.entry(id).watchers]) changed();
    for (const changed of [...this.#watchersOfAll]) changed(id);
  }

  watch(id: string, changed: () => void): () => void {
    const { watchers } = this.entry(id);
    watchers.add(changed);
    return () => watchers.delete(changed);
  }

  watchAll(changed: (id: string) => void): () => void {
    this.#watchersOfAll.add(changed);
    return () => this.#watchersOfAll.delete(changed);
  }
}
