import type { StateRow, StateSection } from "./state-sections.ts";

/** One row of a state that is another one later. Undefined: it was not there before, or is there no more. */
export type ChangedState = {
  readonly section: string;
  readonly name: string;
  readonly before: StateRow | undefined;
  readonly after: StateRow | undefined;
};

/** What differs between two states of a source, in the order in which the later one is shown; what is gone comes last. */
export function stateChanges(before: readonly StateSection[], after: readonly StateSection[]): readonly ChangedState[] {
  const old = rowsByName(before);
  const changed = [...rowsByName(after)].flatMap(([key, { section, row }]): ChangedState[] => {
    const former = old.get(key)?.row;
    return former?.value === row.value ? [] : [{ section, name: row.name, before: former, after: row }];
  });
  const now = rowsByName(after);
  const removed = [...old].flatMap(([key, { section, row }]): ChangedState[] =>
    now.has(key) ? [] : [{ section, name: row.name, before: row, after: undefined }],
  );
  return [...changed, ...removed];
}

type Placed = { readonly section: string; readonly row: StateRow };

/** Several rows of a section may have one name, as two ports of a service: they are numbered. */
function rowsByName(sections: readonly StateSection[]): ReadonlyMap<string, Placed> {
  const found = new Map<string, Placed>();
  for (const { title, rows } of sections) {
    for (const row of rows) {
      let index = 0;
      while (found.has(`${title}\n${row.name}\n${index}`)) index++;
      found.set(`${title}\n${row.name}\n${index}`, { section: title, row });
    }
  }
  return found;
}

/**
 * Whether something was not run again: Skaffold forgets at the start of a loop how its steps went before. Ports are closed
 * only once the loop is over.
 */
export function isReset({ section, after }: ChangedState, isRunning: boolean): boolean {
  if (after?.value === "not started") return true;
  return after === undefined && (isRunning || section !== "Ports");
}
