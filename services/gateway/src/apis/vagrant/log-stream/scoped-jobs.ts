import { Project, Target } from "@tapedeck/proto/vagrant/vagrant";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../../call-context.ts";
import { readCollection } from "../../read-collection.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { firstOfJob } from "../job-stream/first-event.ts";
import { RecentMap } from "./recent-map.ts";

/** The resource that a job is about; `id`: its resource_id. */
export type JobScope = { readonly kind: "basis" | "project" | "target"; readonly id: string };

export type ScopedJobsOptions = {
  readonly source: SourceName;
  readonly scope: JobScope;
  readonly context: CallContext;
};

/**
 * A target or project may be polled only after its first job has started to print. An event that was just recorded waits
 * that long for its parent, once. Then the parent counts as unknown, and is asked for again only after a while.
 */
const timeoutMs = 2_000;
const askAgainMs = 1_000;

/**
 * The jobs about a basis, project or target, or about anything that belongs to it: projects belong to a basis, and
 * targets to a project. The log's facts about a job name what it is about. The session's state has the project of a
 * target, and the basis of a project.
 */
export class ScopedJobs {
  readonly #deps: ScopeDeps;
  readonly #source: SourceName;
  readonly #scope: JobScope;
  readonly #context: CallContext;
  readonly #scopes = new RecentMap<JobScope | undefined>();
  readonly #parents = new RecentMap<JobScope>();
  /** When the parent of a scope was last not found, by performance.now(). */
  readonly #unknownParents = new RecentMap<number>();

  constructor(deps: ScopeDeps, { source, scope, context }: ScopedJobsOptions) {
    this.#deps = deps;
    this.#source = source;
    this.#scope = scope;
    this.#context = context;
  }

  /** Remembers what a job is about, from a fact of the job. */
  learn(recorded: RecordedEvent): void {
    const scope = scopeIn(recorded);
    if (scope !== undefined) this.#scopes.set(recorded.event.subject, scope);
  }

  /** Whether the job of an event is in the wanted scope. */
  async has(recorded: RecordedEvent): Promise<boolean> {
    return this.#isInScope(await this.#scopeOf(recorded), recorded);
  }

  async #scopeOf({ event, offset }: RecordedEvent): Promise<JobScope | undefined> {
    const job = event.subject;
    if (!this.#scopes.has(job)) {
      const search = { log: this.#deps.log(), source: this.#source, job, session: undefined, untilOffset: offset };
      this.#scopes.set(job, scopeIn(await firstOfJob(search, this.#context.signal)));
    }
    return this.#scopes.get(job);
  }

  async #isInScope(scope: JobScope | undefined, recorded: RecordedEvent): Promise<boolean> {
    if (scope === undefined) return false;
    if (scope.kind === this.#scope.kind) return scope.id === this.#scope.id;
    const isWider = scope.kind === "basis" || this.#scope.kind === "target";
    return !isWider && this.#isInScope(await this.#parentOf(scope, recorded), recorded);
  }

  async #parentOf(scope: JobScope, recorded: RecordedEvent): Promise<JobScope | undefined> {
    const key = `${scope.kind} ${scope.id}`;
    const known = this.#parents.get(key);
    const requestedAt = this.#unknownParents.get(key) ?? Number.NEGATIVE_INFINITY;
    if (known !== undefined || performance.now() - requestedAt < askAgainMs) return known;
    const isNew = !this.#unknownParents.has(key) && Date.now() - recorded.recordedAt.getTime() < timeoutMs;
    const end = performance.now() + (isNew ? timeoutMs : 0);
    let parent = await this.#findParent(scope, recorded);
    while (parent === undefined && performance.now() < end && !this.#context.signal.aborted) {
      await delay(100, this.#context.signal);
      parent = await this.#findParent(scope, recorded);
    }
    if (parent === undefined) this.#unknownParents.set(key, performance.now());
    else this.#parents.set(key, parent);
    return parent;
  }

  /** By the state as it is now, else as it was then: a command removes the targets that it has ended. */
  async #findParent(scope: JobScope, recorded: RecordedEvent): Promise<JobScope | undefined> {
    const at = this.#deps.positions.written(recorded.offset);
    return (await this.#readParent(scope, recorded, { minPosition: at })) ?? this.#readParent(scope, recorded, { at });
  }

  async #readParent({ kind, id }: JobScope, { event }: RecordedEvent, when: Partial<CallContext>) {
    const collection = kind === "target" ? "targets" : "projects";
    const context = { ...this.#context, session: event.session, ...when };
    const { rows } = await readCollection(this.#deps, "vagrant", collection, context, id);
    const row = rows.find(({ key }) => key === id);
    if (row === undefined) return undefined;
    return kind === "target"
      ? scopeOfRef("project", Target.decode(row.bytes).project)
      : scopeOfRef("basis", Project.decode(row.bytes).basis);
  }
}

function scopeOfRef(kind: JobScope["kind"], ref: { readonly resource_id: string } | undefined): JobScope | undefined {
  return ref === undefined || ref.resource_id === "" ? undefined : { kind, id: ref.resource_id };
}

function scopeIn(recorded: RecordedEvent | undefined): JobScope | undefined {
  const detail = recorded?.event.detail;
  if (detail?.$case !== "job") return undefined;
  const { scope, scope_id: id } = detail.value;
  return (scope === "basis" || scope === "project" || scope === "target") && id !== ""
    ? { kind: scope, id }
    : undefined;
}
