/** How long a row takes to its new place. */
const moveMs = 240;

/** Where the rows of a list are on the page, by the name that they have in `data-source`. */
export function topsOf(list: HTMLElement | null): ReadonlyMap<string, number> {
  const rows = [...(list?.querySelectorAll<HTMLElement>("[data-source]") ?? [])];
  return new Map(rows.map((row) => [row.dataset.source ?? "", row.getBoundingClientRect().top + scrollY]));
}

/** Lets the rows that the visitor sees glide to where they are now. Without motion they are there at once. */
export function glideFrom(before: ReadonlyMap<string, number>, list: HTMLElement | null): void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const isSeen = (top: number) => top > scrollY - innerHeight / 2 && top < scrollY + innerHeight * 1.5;
  for (const row of list?.querySelectorAll<HTMLElement>("[data-source]") ?? []) {
    const old = before.get(row.dataset.source ?? "");
    const top = row.getBoundingClientRect().top + scrollY;
    if (old === undefined || Math.abs(old - top) < 1 || !(isSeen(old) || isSeen(top))) continue;
    row.animate([{ transform: `translateY(${old - top}px)` }, { transform: "none" }], {
      duration: moveMs,
      easing: "ease-out",
    });
  }
}
