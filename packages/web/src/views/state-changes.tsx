import type { State } from "@tapedeck/client";
import type { Loop } from "@tapedeck/client/lanes/step";
import { useMemo, useState } from "preact/hooks";
import { reader } from "../data/reader.ts";
import { answered, useReading } from "../data/reading.ts";
import { sessionPath } from "../model/route.ts";
import { type ChangedState, isReset, stateChanges } from "../model/state-change.ts";
import { type StateRow, stateSections } from "../model/state-sections.ts";
import { stateSigns } from "../parts/state-panel.tsx";
import { to } from "../router.ts";

type Props = { readonly source: string; readonly loop: Loop };
type BeforeAndAfter = {
  readonly before: State | undefined;
  readonly after: State | undefined;
  readonly error?: string;
};

/** What is another than when the loop began: the state of both moments, as the API gives it. */
export function StateChanges({ source, loop }: Props) {
  const [read, setRead] = useState<BeforeAndAfter>();
  const [error, setError] = useState<string>();
  useReading(
    [loop.position, loop.endPosition, loop.steps],
    async (signal) => {
      const at = async (position: string | undefined) => {
        const options = { session: loop.session, ...(position !== undefined && { at: position }), signal };
        return answered<State | undefined>(reader().state(source, options), undefined, signal);
      };
      const [before, after] = await Promise.all([at(loop.position), at(loop.endPosition)]);
      setRead({ before: before.value, after: after.value });
      setError(before.error ?? after.error);
    },
    setError,
  );
  const changes = useMemo(() => read && changesOf(read), [read]);
  const isKnown = read !== undefined && isOf(read.before, loop.position) && isOf(read.after, loop.endPosition);
  return (
    <section class="state-changes" aria-label="What changed in state">
      <h2 class="part">
        What changed in state{" "}
        <span class="quiet-text">
          {loop.endedAt === undefined ? "since it began" : "between its start and its end"}
        </span>
      </h2>
      {error !== undefined ? (
        <p class="quiet-text">The state of then could not be read. {error}</p>
      ) : changes === undefined ? (
        <p class="quiet-text">Reading the state …</p>
      ) : (
        <>
          {!isKnown && <p class="quiet-text">The state of one of these moments is that of an earlier one.</p>}
          <Changes changes={changes} loop={loop} />
        </>
      )}
    </section>
  );
}

function changesOf({ before, after }: BeforeAndAfter): readonly ChangedState[] {
  const sections = (state: State | undefined) =>
    state === undefined ? [] : stateSections(state.upstream, state.state);
  return stateChanges(sections(before), sections(after));
}

/** Whether a state is of the moment that was asked for: a file may have only an earlier one. */
function isOf(state: State | undefined, position: string | undefined): boolean {
  return position === undefined || state?.at === position;
}

type ChangesProps = { readonly changes: readonly ChangedState[]; readonly loop: Loop };

function Changes({ changes, loop }: ChangesProps) {
  if (changes.length === 0) return <p class="quiet-text">Nothing: it left everything as it was.</p>;
  const isRunning = loop.endedAt === undefined;
  const changed = changes.filter((one) => !isReset(one, isRunning));
  const reset = changes.filter((one) => isReset(one, isRunning));
  return (
    <>
      {changed.length > 0 && <ChangeTable changes={changed} loop={loop} />}
      {reset.length > 0 && (
        <p class="quiet-text">
          Not run again{isRunning && " yet"}: {reset.map(({ name }) => name).join(", ")}
        </p>
      )}
    </>
  );
}

function ChangeTable({ changes, loop }: ChangesProps) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">what</th>
          <th scope="col">
            <a href={to(sessionPath(loop.session, loop.position))}>before</a>
          </th>
          <th scope="col">
            {loop.endPosition === undefined ? (
              "now"
            ) : (
              <a href={to(sessionPath(loop.session, loop.endPosition))}>after</a>
            )}
          </th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ section, name, before, after }, index) => (
          <tr key={`${section} ${name} ${index}`}>
            <th scope="row">
              {name} <span class="quiet-text">{section.toLowerCase()}</span>
            </th>
            <Value row={before} />
            <Value row={after} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Value({ row }: { readonly row: StateRow | undefined }) {
  if (row === undefined) return <td class="quiet-text">–</td>;
  return (
    <td class={row.tone}>
      <span aria-hidden="true">{stateSigns[row.tone]}</span> {row.value}
    </td>
  );
}
