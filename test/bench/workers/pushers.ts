import { delay } from "@tapedeck/shared/sync/delay";
import { PushedSource, WorkspaceLink } from "../frame/pushed-source.ts";

/** Taps of many workspaces in a separate process. */

const links: WorkspaceLink[] = [];
let sources: PushedSource[] = [];
let turn = 0;

export type PushersOptions = {
  /** The address of ingest, "host:port". */
  readonly address: string;
  readonly key: string;
  readonly workspaces: readonly string[];
  /** In each workspace. */
  readonly sources: number;
};

/** How many taps begin at once. */
const atOnce = 20;

/** Resolves when all sources are in the log. */
export async function connect({ address, key, workspaces, sources: count }: PushersOptions): Promise<void> {
  for (let first = 0; first < workspaces.length; first += atOnce) {
    const some = workspaces.slice(first, first + atOnce).flatMap((workspace) => {
      const link = new WorkspaceLink(address, workspace, key);
      links.push(link);
      return Array.from({ length: count }, (_, at) => new PushedSource(link.link, workspace, `p${at}`));
    });
    await Promise.all(some.map((source) => source.recorded()));
    sources.push(...some);
  }
}

export async function leave(): Promise<void> {
  await Promise.all(sources.map((source) => source[Symbol.asyncDispose]()));
  for (const link of links) link[Symbol.dispose]();
  sources = [];
}

export type Pushed = { readonly count: number; readonly wallMs: number; readonly latenciesMs: Float64Array };

/** Says so many frames a second, in turns. Resolves when all are recorded, with how long each took, ascending. */
export async function pace(perSecond: number, seconds: number): Promise<Pushed> {
  const before = await Promise.all(sources.map(async (source) => (await source.recorded()).length));
  const count = Math.round(perSecond * seconds);
  const start = performance.now();
  for (let done = 0; done < count; await delay(1)) {
    const due = Math.min(count, Math.floor(((performance.now() - start) * perSecond) / 1_000) + 1);
    for (; done < due; done++) sources[turn++ % sources.length]?.push();
  }
  const took = await Promise.all(sources.map(async (source, at) => (await source.recorded()).slice(before[at])));
  return { count, wallMs: performance.now() - start, latenciesMs: Float64Array.from(took.flat()).sort() };
}
