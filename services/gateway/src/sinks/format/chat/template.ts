/** A JSON object with placeholders such as {{text}} in its strings. */
export type ChatTemplate = Readonly<Record<string, unknown>>;

/** What a template can have, as strings. */
export const placeholders = [
  ...["text", "title", "cause", "link", "state", "source", "developer", "project", "upstream", "duration", "more"],
] as const;
export type Placeholder = (typeof placeholders)[number];
export type ChatValues = Readonly<Record<Placeholder, string>>;

/** Spaces belong to it: an expression that left them out would try each way to divide them. */
const pattern = /\{\{([^{}]*)\}\}/g;
const maxCharacters = 8_192;
const maxDepth = 32;

/** Why a template can't be used; undefined: it can. */
export function templateError(template: ChatTemplate): string | undefined {
  // First: what follows goes down to the end.
  if (isDeeper(template, maxDepth)) return `is nested too deep: at most ${maxDepth} levels`;
  const text = JSON.stringify(template);
  if (text.length > maxCharacters) return `has more than ${maxCharacters} characters`;
  const key = keysIn(template).find((one) => namesIn(one).some(isPlaceholder));
  if (key !== undefined) return `has the key ${JSON.stringify(key)}: placeholders are replaced in values alone`;
  const names = namesIn(text);
  const unknown = names.find((name) => !isPlaceholder(name));
  if (unknown !== undefined)
    return `has {{${unknown}}}: there are ${placeholders.map((name) => `{{${name}}}`).join(", ")}`;
  if (!names.some((name) => name === "text" || name === "title")) return "has neither {{text}} nor {{title}}";
  return undefined;
}

/** The body of a request. A value becomes a part of a string, whatever is in it. */
export function filled(template: ChatTemplate, values: ChatValues): string {
  return JSON.stringify(template, (_, value: unknown) =>
    typeof value === "string"
      ? value.replace(pattern, (whole, inner: string) => {
          const name = inner.trim();
          return isPlaceholder(name) ? values[name] : whole;
        })
      : value,
  );
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(pattern)].map(([, inner = ""]) => inner.trim());
}

function keysIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = Array.isArray(value) ? [] : Object.keys(value);
  return [...own, ...Object.values(value).flatMap(keysIn)];
}

function isPlaceholder(name: string): name is Placeholder {
  return (placeholders as readonly string[]).includes(name);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1));
}
