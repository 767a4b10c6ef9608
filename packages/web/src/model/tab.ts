/** The title of a tab: how much fails comes first, where it is seen in a row of narrow tabs. */
export function tabTitle(view: string, failing: number): string {
  const title = view === "" ? "Tapedeck" : `${view} · Tapedeck`;
  return failing > 0 ? `(${failing}) ${title}` : title;
}

/** The icon of a tab with the number of failing sources in red. Undefined: nothing fails. */
export function tabIcon(failing: number): string | undefined {
  if (failing <= 0) return undefined;
  const count = failing > 9 ? "9+" : `${failing}`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="1" y="1" width="30" height="30" rx="7" fill="#c22b28"/><text x="16" y="24" text-anchor="middle" font-family="system-ui,sans-serif" font-size="${count.length > 1 ? 18 : 22}" font-weight="700" fill="#fff">${count}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
