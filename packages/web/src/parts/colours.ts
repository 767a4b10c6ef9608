import { useEffect, useState } from "preact/hooks";

/** The page's colours by name, for what is drawn on a canvas. Another function when the visitor takes others. */
export function useColours(): (name: string) => string {
  const [colours, setColours] = useState(readColours);
  useEffect(() => {
    const changed = () => setColours(readColours);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", changed);
    const chosen = new MutationObserver(changed);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      dark.removeEventListener("change", changed);
      chosen.disconnect();
    };
  }, []);
  return colours;
}

/** State is set by a function, so a function in it comes out of one. */
function readColours(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (name) => {
    const colour = known.get(name) ?? style.getPropertyValue(`--${name}`).trim();
    known.set(name, colour);
    return colour;
  };
}
