// Which query answers for a workspace changes without a copy or a pause: the new one makes its tables from the log.
//
//   in the map   at: old            also: new   projects the log from its beginning; nobody asks it
//                at: new            also: old   has caught up, and has said so; gateways ask it from now on
//                at: new                        the old one has deleted its rows, after those who still asked it
//
// 1. Every step is an entry in the map, or rows in a database, and each begins with what it finds there. So a process may be
//    killed at any of them, and the next one goes on.
// 2. A query writes only that it takes part, that it has caught up, that it gives a workspace up, and that it is gone.
// 3. The old one projects until it deletes its rows: who still asks it gets answers as new as before. It keeps them while
//    nobody takes connections at the address of the new one: gateways can't reach it either, and go on asking the old one.
import {
  defaultQuery,
  QueryMapStore,
  queriesOf,
  queryMapMs,
  type WorkspaceQueries,
} from "@tapedeck/shared/log/queries/query-map";
import type { Logger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import type { NatsConnection } from "nats";
import { readAnyCheckpoint } from "../../db/checkpoint.ts";
import type { Database } from "../../db/database.ts";
import type { CheckpointRow } from "../../db/schema.ts";
import { areAllWithout } from "../forget/all-tables.ts";
import { forgetWorkspace } from "../forget/workspace.ts";
import type { WorkspaceState, WorkspaceStates } from "../workspace-state.ts";
import { type AssignedWorkspaces, assignmentOf, queryNamed, wants } from "./assigned-workspaces.ts";
import { takesConnections } from "./query-address.ts";

export type TakeOverOptions = {
  readonly assigned: AssignedWorkspaces;
  readonly nats: NatsConnection;
  /** All workspaces that have a log, also those of other queries. */
  readonly names: () => Promise<readonly string[]>;
  readonly database: Database;
  readonly states: WorkspaceStates;
  readonly logger: Logger;
  /**
   * How long rows are kept that another query answers with: as long as a gateway may not know of the change, and then may wait
   * for an answer.
   */
  readonly leaveMs: number;
};

/** Projects a workspace, or stops and begins again. */
export type Projections = {
  readonly begin: (workspace: string) => void;
  readonly restart: (workspace: string) => void;
};

/** How often it is tried to go on. */
const stepMs = 500;
/** Tables have caught up when they reach an end of the log that is no older than this. */
const caughtUpMs = 1_000;

/** Takes over what this query is set to, and gives up what it is not. For the process that projects. */
export class TakeOvers {
  readonly #options: TakeOverOptions;
  readonly #projections: Projections;
  readonly #map: QueryMapStore;
  readonly #leavingSince = new Map<string, number>();
  #lastFailure = "";
  readonly #warned = new Set<string>();

  constructor(options: TakeOverOptions, projections: Projections) {
    this.#options = options;
    this.#projections = projections;
    this.#map = new QueryMapStore(options.nats);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { assigned, logger } = this.#options;
    while (!signal.aborted) {
      const changed = assigned.changed();
      for (const conflict of assigned.conflicts().filter((one) => !this.#warned.has(one))) {
        this.#warned.add(conflict);
        logger.warn(conflict);
      }
      let isDone = true;
      try {
        const steps = (await this.#workspaces()).map((workspace) => this.#step(workspace));
        isDone = (await Promise.all(steps)).every((one) => one);
        this.#lastFailure = "";
      } catch (err) {
        const reason = err instanceof Error ? err.message : String(err);
        if (reason !== this.#lastFailure && !signal.aborted) logger.warn({ err }, "workspaces can't be taken over now");
        this.#lastFailure = reason;
      }
      using rest = new LinkedController(signal);
      await Promise.race([changed, delay(isDone ? this.#restMs : stepMs, rest.signal)]);
      rest.abort();
    }
  }

  /** Without patterns all that is to do is in the map. */
  get #restMs(): number {
    const isInMap = this.#options.assigned.query.patterns.length === 0 && this.#lastFailure === "";
    return isInMap ? Number.POSITIVE_INFINITY : queryMapMs;
  }

  /** Those that may have to change hands. */
  async #workspaces(): Promise<readonly string[]> {
    const { assigned, names } = this.#options;
    const named = assigned.query.patterns.length === 0 ? [] : await names();
    return [...new Set([...assigned.entries().keys(), ...named.filter((one) => wants(assigned.query, one))])];
  }

  /** False: there is more to do. */
  async #step(workspace: string): Promise<boolean> {
    const assignment = this.#options.assigned.of(workspace);
    if (assignment !== "leaving") this.#leavingSince.delete(workspace);
    switch (assignment) {
      case "own":
        await this.#own(workspace);
        return true;
      case "taking":
        return await this.#take(workspace);
      case "leaving":
        return await this.#leave(workspace);
      default:
        return true;
    }
  }

  /** What this query is no longer set to have, another one may take. */
  async #own(workspace: string): Promise<void> {
    const { query } = this.#options.assigned;
    const offered = !wants(query, workspace);
    const { at, offered: before } = queriesOf(this.#options.assigned.entries(), workspace);
    this.#projections.begin(workspace);
    if (before === offered) return;
    await this.#change(workspace, (entry) => (entry.at === at ? { ...entry, offered } : entry));
    if (offered) this.#options.logger.info({ workspace }, "the workspace is given up: another query may take it over");
  }

  async #take(workspace: string): Promise<boolean> {
    const { assigned, database, states, logger } = this.#options;
    const { name } = assigned.query;
    const { at, also } = queriesOf(assigned.entries(), workspace);
    const checkpoint = await readAnyCheckpoint(database.db, workspace);
    if (checkpoint !== undefined && (checkpoint.removed || !also.includes(name))) {
      // Nobody asked these tables whether they have what was erased since.
      await this.#delete(workspace, checkpoint);
      return false;
    }
    if (checkpoint === undefined) {
      if (!also.includes(name) && !(await areAllWithout(database, workspace))) return false;
      // An erasure asks every query in the map before it removes the last message of a source.
      await this.#change(workspace, (entry) =>
        entry.at === name || entry.also.includes(name) ? entry : { ...entry, also: [...entry.also, name] },
      );
    }
    assigned.begin(workspace);
    this.#projections.begin(workspace);
    const state = states.of(workspace);
    if (!(await isCaughtUp(state))) return false;
    await this.#change(workspace, (entry) =>
      assignmentOf(assigned.query, workspace, entry) !== "taking"
        ? entry
        : { at: name, also: [...new Set([entry.at, ...entry.also])].filter((one) => one !== name), offered: false },
    );
    if (assigned.of(workspace) === "own")
      logger.info({ workspace, from: queryNamed(at) }, "the workspace was taken over");
    return true;
  }

  /** The projection deletes the rows once they are marked. */
  async #delete(workspace: string, { removed }: CheckpointRow): Promise<void> {
    if (!removed) await forgetWorkspace(this.#options.database.db, workspace);
    if (removed) this.#projections.begin(workspace);
    else this.#projections.restart(workspace);
  }

  async #leave(workspace: string): Promise<boolean> {
    const { assigned, database, leaveMs, logger } = this.#options;
    const since = this.#leavingSince.get(workspace) ?? performance.now();
    this.#leavingSince.set(workspace, since);
    this.#projections.begin(workspace);
    if (performance.now() - since < leaveMs) return false;
    assigned.found(await this.#map.read());
    if (assigned.of(workspace) !== "leaving" || !(await this.#isReached(workspace))) return false;
    const checkpoint = await readAnyCheckpoint(database.db, workspace);
    if (checkpoint === undefined) {
      if (!(await areAllWithout(database, workspace))) return false;
      await this.#change(workspace, (entry) =>
        assignmentOf(assigned.query, workspace, entry) === "leaving" ? without(entry, assigned.query.name) : entry,
      );
      logger.info({ workspace }, "the workspace has another query now, and its rows here are deleted");
      return true;
    }
    await this.#delete(workspace, checkpoint);
    return false;
  }

  /** Whether the query that has a workspace now can be reached, as far as this one can know. */
  async #isReached(workspace: string): Promise<boolean> {
    const { assigned } = this.#options;
    const { at } = queriesOf(assigned.entries(), workspace);
    const isReached = at === defaultQuery || (await takesConnections(at));
    const why = `workspace ${workspace} keeps its rows here, because nobody takes connections at ${at}, where the query is said to be that has taken it over: start that query or, if its query.advertise is wrong, have it give the workspace back under that address first`;
    assigned.keeps(workspace, isReached ? undefined : why);
    return isReached;
  }

  async #change(workspace: string, change: (entry: WorkspaceQueries) => WorkspaceQueries): Promise<void> {
    this.#options.assigned.found(await this.#map.change(workspace, change));
  }
}

function without(entry: WorkspaceQueries, name: string): WorkspaceQueries {
  return entry.also.includes(name) ? { ...entry, also: entry.also.filter((one) => one !== name) } : entry;
}

/** Whether the tables have what the log has now, apart from what it has got meanwhile. */
async function isCaughtUp({ log, progress, waitingFor }: WorkspaceState): Promise<boolean> {
  if (log === undefined || waitingFor !== undefined) return false;
  const { lastOffset, mayBeBehind } = await log.bounds();
  return mayBeBehind !== true && (await progress.reached(lastOffset, caughtUpMs));
}
