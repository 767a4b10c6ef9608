/** A question of docs/sql.md: its query, and the position of its answer in the page. */
export type Question = { readonly title: string; readonly query: string };

const question = /^### \d+\. (?<title>.*)\n\n```sql\n(?<query>[^`]*?);?\n```\n\n(?<answer>(?:\|.*\n)+\n)?/gm;

export function questionsIn(page: string): readonly Question[] {
  return [...page.matchAll(question)].map(({ groups: { title = "", query = "" } = {} }) => ({ title, query }));
}

/** Returns the page with an answer below each question, in their order. */
export function withAnswers(page: string, answers: readonly string[]): string {
  let index = 0;
  return page.replace(question, (_, title: string, query: string) => {
    index += 1;
    return `### ${index}. ${title}\n\n\`\`\`sql\n${query};\n\`\`\`\n\n${answers[index - 1]}\n`;
  });
}

/** Renders a Markdown table. Values are as Postgres writes them; null is empty. */
export function tableOf(columns: readonly string[], rows: readonly (readonly (string | null)[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  const cell = (value: string | null) => (value ?? "").replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
  return [line(columns), `|${"---|".repeat(columns.length)}\n`, ...rows.map((row) => line(row.map(cell)))].join("");
}
