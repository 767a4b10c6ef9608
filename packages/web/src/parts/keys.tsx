import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

const isShown = signal(false);

/** The keyboard shortcuts, as a dialog that "?" opens. */
export function Keys({ keys }: { readonly keys: readonly (readonly [key: string, what: string])[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(
    () =>
      effect(() => {
        if (isShown.value) dialog.current?.showModal();
        else dialog.current?.close();
      }),
    [],
  );
  return (
    <dialog
      ref={dialog}
      class="keys"
      aria-label="Keys"
      onClose={() => {
        isShown.value = false;
      }}
    >
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

/** The keys of every view. */
export function useKeys(): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === "?") isShown.value = !isShown.value;
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#search")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
