import { useLayoutEffect } from "preact/hooks";

const dialogClass = "keys";

/** The keyboard shortcuts, as a dialog that "?" opens. */
export function Keys({ keys }: { readonly keys: readonly (readonly [key: string, what: string])[] }) {
  return (
    <dialog class={dialogClass} aria-label="Keys">
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}

function dialogHere(): HTMLDialogElement | null {
  return document.querySelector<HTMLDialogElement>(`dialog.${dialogClass}`);
}

/** Whether a key is meant for a view: not for a field, not for the browser, and not for the dialog. */
export function isForView({ target, metaKey, ctrlKey, altKey }: KeyboardEvent): boolean {
  const isInField =
    target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
  return !(isInField || metaKey || ctrlKey || altKey || dialogHere()?.open === true);
}

/** The keys of every view. */
export function useKeys(): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const dialog = dialogHere();
      if (event.key === "?" && dialog?.open === true) dialog.close();
      else if (event.key === "?" && isForView(event)) dialog?.showModal();
      else if (event.key === "/" && isForView(event)) {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#search")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
