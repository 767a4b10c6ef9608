/** A word as a shell takes it for one. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./#-]+$/.test(text) && !text.startsWith("#") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
