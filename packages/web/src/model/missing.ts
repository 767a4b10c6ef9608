export type View = { readonly path: string; readonly name: string; readonly shows: string };

/** What a visitor finds, with the words by which people look for it. */
const found: readonly (View & { readonly words: RegExp })[] = [
  { path: "/", name: "Now", shows: "what happens, and what fails", words: /^(now|home|index|dashboard|sources?|live)/ },
  {
    path: "/loops",
    name: "Loops",
    shows: "all loops, commands and sessions, and a search in them",
    words: /^(loop|sess|run|build|deploy|command|hist|search|event|log|fail|error)/,
  },
  { path: "/compare", name: "Compare", shows: "why it works here and not there", words: /^(comp|diff|why)/ },
  { path: "/trends", name: "Trends", shows: "what costs the most time", words: /^(trend|stat|metric|chart|report)/ },
  { path: "/health", name: "Health", shows: "whether everything is recorded", words: /^(health|status|ready|admin)/ },
  { path: "/api/docs/", name: "API", shows: "every path for programs", words: /^(api|openapi|swagger|docs?$|v\d)/ },
];

export const views: readonly View[] = found.map(({ words: _, ...view }) => view);

/** The view that a wrong path may mean. Undefined: its words name none. */
export function viewMeant(path: string): View | undefined {
  const [first = ""] = path
    .toLowerCase()
    .split("/")
    .filter((part) => part !== "");
  const meant = found.findIndex(({ words }) => words.test(first));
  return views[meant];
}
