import { useEffect, useState } from "preact/hooks";

const watched = new Map<Element, (isSeen: boolean) => void>();

/** One for all elements: an observer each costs more than what it saves. */
const observer = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) watched.get(target)?.(isIntersecting);
  },
  { rootMargin: "200px" },
);

/** Whether an element is on the screen, or nearly. */
export function useIsSeen(box: { readonly current: Element | null }): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    watched.set(element, setSeen);
    observer.observe(element);
    return () => {
      watched.delete(element);
      observer.unobserve(element);
    };
  }, []);
  return isSeen;
}
